# SPDX-License-Identifier: Apache-2.0
"""Blocks that change JAX's configuration for one thread, which asyncio tasks may share.

JAX keeps its configuration per thread, and Python has no hook for switches between tasks. So a block held across an `await`
affects the tasks that run meanwhile. hlotag detects this: a context variable records the blocks of the running task, and
lowering is an error if they differ from the thread's.
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
      owner: the block.
      undo: restores the thread's configuration.
      below: the thread's innermost entry before this one.
      outer: the innermost entry before this one of the task, or of the code outside of tasks.
      thread: the thread's identifier.
      in_task: whether an asyncio task entered the block.
      is_open: whether the block has not been left.
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
      kind: their name in messages.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._here = threading.local()
        self._task: ContextVar[Entry | None] = ContextVar(f"hlotag_{kind}", default=None)

    def enter(self, owner: object, change: Callable[[], Callable[[], None]]) -> Entry:
        """Enters a block.

        Args:
          owner: the block.
          change: changes the thread's configuration and returns a function that restores it.

        Returns:
          The entry, for `leave`.
        """
        entry = Entry(owner, change(), self._innermost(), self._mine(), threading.get_ident(), _in_task())
        self._here.innermost = entry
        self._task.set(entry)
        return entry

    def leave(self, entry: Entry) -> None:
        """Leaves a block. A block that another task entered since stays in force.

        Args:
          entry: the block's entry.
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
          ScopeError: this thread has no open entry of `owner`.
        """
        for entry, following in ((self._mine(), "outer"), (self._innermost(), "below")):
            at = entry
            while at is not None:
                if at.owner is owner and at.is_open:
                    return at
                at = getattr(at, following)
        raise ScopeError(f"a {self._kind} block was left in a thread that had not entered it")

    def check(self) -> None:
        """Checks that no block of another task is open in this thread.

        Raises:
          ScopeError: such a block is open.
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
        """The innermost open block of this task. Blocks of a context copied from another thread do not count."""
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
