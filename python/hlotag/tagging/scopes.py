# SPDX-License-Identifier: Apache-2.0
"""The open blocks of this thread, and the asyncio tasks that opened them.

JAX's configuration belongs to the thread, and Python has no hook for switches between tasks. So a block that is open across an
`await` affects other tasks of the thread. hlotag detects this: a context variable records the open blocks of the running task,
and lowering raises if they differ from the thread's open blocks.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass

from hlotag.errors import ScopeError


@dataclass(eq=False)
class _Entry:
    """A block that was entered.

    Attributes:
        owner: The block.
        undo: Restores the thread's configuration.
        thread: The thread's identifier.
        in_task: Whether an asyncio task entered the block.
        is_open: Whether the block has not been left.
    """

    owner: object
    undo: Callable[[], None]
    thread: int
    in_task: bool
    is_open: bool = True


class Scopes:
    """The open blocks of one kind.

    Args:
        kind: The name of the blocks in messages.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._here = threading.local()
        self._task: ContextVar[tuple[_Entry, ...]] = ContextVar(f"hlotag_{kind}", default=())

    def enter(self, owner: object, change: Callable[[], Callable[[], None]]) -> None:
        """Enters a block: `change` changes the thread's configuration and returns a function that restores it."""
        entry = _Entry(owner, change(), threading.get_ident(), _in_task())
        self._of_thread().append(entry)
        self._task.set((*self._of_task(), entry))

    def leave(self, owner: object) -> None:
        """Leaves the innermost open block of `owner` in this task, or else in this thread.

        A block that another task has entered since stays open. Raises ScopeError if this thread has no open block of `owner`.
        """
        stack = self._of_thread()
        for entry in (*reversed(self._of_task()), *reversed(stack)):
            if entry.owner is owner and entry.is_open:
                break
        else:
            raise ScopeError(
                f"a {self._kind} block was left in a thread that had not entered it; leave it in the thread that entered it"
            )
        entry.is_open = False
        self._task.set(self._of_task())
        while stack and not stack[-1].is_open:
            stack.pop().undo()

    def check(self) -> None:
        """Raises ScopeError if a block of another task is open in this thread."""
        of_thread, of_task = self._of_thread()[-1:], list(self._of_task()[-1:])
        if of_task == of_thread or not any(entry.in_task for entry in (*of_task, *of_thread)):
            return
        raise ScopeError(
            f"an asyncio task holds a hlotag {self._kind} block open across an await, and another task runs in it. JAX's "
            f"configuration belongs to the thread, not to the task. Leave the block before awaiting, or give each "
            f"task's JAX calls a thread of their own (asyncio.to_thread, with the block inside), or use hlotag.enable()."
        )

    def _of_thread(self) -> list[_Entry]:
        """The blocks of this thread; the innermost one is open."""
        if not hasattr(self._here, "entries"):
            self._here.entries = []
        return self._here.entries

    def _of_task(self) -> tuple[_Entry, ...]:
        """The open blocks of this task. Blocks of a context copied from another thread do not count."""
        here = threading.get_ident()
        return tuple(entry for entry in self._task.get() if entry.is_open and entry.thread == here)


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
