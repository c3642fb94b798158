# SPDX-License-Identifier: Apache-2.0
"""Blocks that change JAX's configuration for one thread, and what becomes of them when asyncio tasks share the thread.

JAX keeps its configuration per thread, not per task, and Python has no hook for when an event loop turns to another task. A block
that is held across an `await` is therefore on in whatever task runs meanwhile. That cannot be prevented; it can be noticed:
a context variable says which blocks the running task is in, and where that is not what the thread has, lowering is refused.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass

from hlotag.errors import ScopeError


@dataclass(eq=False)
class Entry:
    """A block that was entered.

    Attributes:
      owner: what was entered.
      undo: puts the thread's configuration back to what it was before.
      below: the entry that was the thread's innermost then.
      outer: the entry that the task, or the code outside of tasks, was in then.
      thread: the thread's identifier.
      in_task: whether an asyncio task entered it.
      is_open: until it is left.
    """

    owner: object
    undo: Callable[[], None]
    below: Entry | None
    outer: Entry | None
    thread: int
    in_task: bool
    is_open: bool = True


class Scopes:
    """The blocks of one kind.

    Args:
      kind: what to call them in messages.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._here = threading.local()
        self._task: ContextVar[Entry | None] = ContextVar(f"hlotag_{kind}", default=None)

    def enter(self, owner: object, change: Callable[[], Callable[[], None]]) -> Entry:
        """Enters a block.

        Args:
          owner: the block.
          change: changes the thread's configuration and returns what undoes that.

        Returns:
          What `leave` takes.
        """
        entry = Entry(owner, change(), self._innermost(), self._mine(), threading.get_ident(), _in_task())
        self._here.innermost = entry
        self._task.set(entry)
        return entry

    def leave(self, entry: Entry) -> None:
        """Leaves a block; if another task's block was entered since, that one stays in force until it is left.

        Args:
          entry: of the block.
        """
        entry.is_open = False
        self._task.set(self._mine())
        innermost = self._innermost()
        while innermost is not None and not innermost.is_open:
            innermost.undo()
            innermost = self._here.innermost = innermost.below

    def entry_of(self, owner: object) -> Entry:
        """The innermost open entry of `owner` in this task, or else in this thread.

        Args:
          owner: a block that was entered.

        Returns:
          The entry.

        Raises:
          ScopeError: there is none in this thread.
        """
        for entry, following in ((self._mine(), "outer"), (self._innermost(), "below")):
            at = entry
            while at is not None:
                if at.owner is owner and at.is_open:
                    return at
                at = getattr(at, following)
        raise ScopeError(f"a {self._kind} block was left in a thread that had not entered it")

    def check(self) -> None:
        """Refuses to go on in a task while another task's block is on in this thread.

        Raises:
          ScopeError: that is so.
        """
        innermost, mine = self._innermost(), self._mine()
        if mine is innermost or not any(entry is not None and entry.in_task for entry in (mine, innermost)):
            return
        raise ScopeError(
            f"an asyncio task holds a hlotag {self._kind} block open across an await, and another task runs in it. JAX's "
            f"configuration belongs to the thread, not to the task. Leave the block before awaiting, or give each "
            f"task's JAX calls a thread of their own (asyncio.to_thread, with the block inside), or use hlotag.enable()."
        )

    def _innermost(self) -> Entry | None:
        return getattr(self._here, "innermost", None)

    def _mine(self) -> Entry | None:
        """The innermost open block of this task; a context copied into another thread brings none along."""
        entry, thread = self._task.get(), threading.get_ident()
        while entry is not None and not (entry.is_open and entry.thread == thread):
            entry = entry.outer
        return entry


def _in_task() -> bool:
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return False
    try:
        return asyncio.current_task() is not None
    except RuntimeError:  # No event loop runs in this thread.
        return False


stages = Scopes("stage")
tags = Scopes("tagged")
