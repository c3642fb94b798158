# SPDX-License-Identifier: Apache-2.0
"""Which stage is on, kept where JAX's caches see it.

A user context is part of JAX's own cache keys, so a program traced, lowered or compiled under one stage is never taken for
another's, and toggling back finds what was there before.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from dataclasses import astuple, dataclass
from functools import partial
from typing import Any, Literal

import jax

OnError = Literal["raise", "warn"]


@dataclass(frozen=True, eq=False)
class Stage:
    """What runs on every module that JAX lowers: all that changes the result, and so a key of JAX's caches.

    Told apart by identity, as JAX looks its caches up for every operation that is traced: `unique` gives one object for equals.

    Attributes:
      pipeline: pass pipeline in MLIR's syntax, the rules included.
      version: of hlotag, since another version may give another module.
      keys: registered keys that change what is traced and restored (`hlotag.tagging.keys.fingerprint`).
      debug_origins: whether operations record where their entries come from.
      hlo: patterns of the keys that the HLO stage puts right inside XLA; none turns it off.
      op_names: patterns of the keys that profilers see in the names of instructions.
      passes: which registered passes were replaced (`hlotag.passes.python_passes.fingerprint`).
      on_error: "raise", or "warn" to go on without the passes when one of them fails.
      identify: whether the pipeline hands entries on to what autodiff derives, and asks for which operation that was made.
    """

    pipeline: str
    version: str
    keys: str = ""
    debug_origins: bool = False
    hlo: tuple[str, ...] = ("*",)
    op_names: tuple[str, ...] = ()
    passes: str = ""
    on_error: OnError = "raise"
    identify: bool = False


_unique: weakref.WeakValueDictionary[tuple, Stage] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def unique(stage: Stage) -> Stage:
    """The stage that all equal ones are, as long as anybody, JAX's caches among them, has it."""
    with _lock:
        return _unique.setdefault(astuple(stage), stage)


# JAX's user context; None as long as the process has had no stage. A new one is a new part of the keys of JAX's caches, so that
# JAX traces again what it knows: nothing but a stage may make one.
_context: Any = None


def _made() -> Any:
    global _context  # noqa: PLW0603
    with _lock:
        if _context is None:
            _context = jax.make_user_context(None)
    return _context


def active() -> Stage | None:
    """The stage that programs traced in this thread now go through, or None.

    Examples:
      >>> with hlotag.stage("hlotag-resolve,hlotag-verify"):
      ...     hlotag.active().pipeline
      'hlotag-resolve,hlotag-verify'
    """
    return None if _context is None else _context.value


def of_process() -> Stage | None:
    """The stage of all threads that are in no block."""
    return None if _context is None else _context.get_global()


def set_for_process(stage: Stage | None) -> None:
    """Changes `of_process()`."""
    _made().set_global(stage)


def set_for_thread(stage: Stage | None) -> Callable[[], None]:
    """Changes `active()` in this thread; None turns the stage of the process off there.

    Returns:
      What puts it back.
    """
    entered = _made()(stage)
    entered.__enter__()
    return partial(entered.__exit__, None, None, None)
