# SPDX-License-Identifier: Apache-2.0
"""The active stage, which is part of JAX's cache keys.

A JAX user context holds it, which is part of all of JAX's cache keys. So a program that was traced, lowered or compiled in one
stage is never used in another, and a stage that is entered again finds its cached programs.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Literal

import jax

from hlotag import _compat
from hlotag._util.forks import free_in_children

OnError = Literal["raise", "warn"]


@dataclass(frozen=True, eq=False)
class Stage:
    """The settings of a stage: everything that changes lowered modules. A key of JAX's caches.

    Compared by identity, for speed: JAX looks up its caches for every traced operation. `unique` makes equal stages one object.

    Attributes:
        pipeline: Pass pipeline in MLIR's syntax.
        version: Hlotag's version, which may change the module.
        keys: Registered keys that affect tracing and restoring (`hlotag.tagging.keys.fingerprint`).
        debug_origins: Whether operations record where their entries come from.
        hlo: Patterns of the keys that the HLO pass restores; empty turns the HLO pass off.
        op_names: Patterns of the keys that are written into instruction names, for profilers.
        passes: Which registered passes were replaced (`hlotag.passes.python_passes.fingerprint`).
        on_error: "raise", or "warn" to go on without the passes when one of them fails.
        rules: The rules, a `matching.RuleSet`; None if there are none.
    """

    pipeline: str
    version: str
    keys: str = ""
    debug_origins: bool = False
    hlo: tuple[str, ...] = ("*",)
    op_names: tuple[str, ...] = ()
    passes: str = ""
    on_error: OnError = "raise"
    rules: Any = None


_unique: weakref.WeakValueDictionary[tuple, Stage] = weakref.WeakValueDictionary()
_lock = free_in_children(threading.Lock())


def unique(stage: Stage) -> Stage:
    """Returns one object for all equal stages, held weakly."""
    with _lock:
        return _unique.setdefault(_key(stage), stage)


def _key(stage: Stage) -> tuple:
    return tuple(getattr(stage, field.name) for field in fields(stage))


# JAX's user context; None until the process has its first stage. Only a stage may create it, because a new user context changes
# the keys of JAX's caches, so that JAX traces known programs again.
_context: Any = None


def _user_context() -> Any:
    global _context  # noqa: PLW0603
    with _lock:
        if _context is None:
            _context = jax.make_user_context(None)
    return _context


class _Off:
    """A value of the user context that stands for no stage, once a program was half traced under None."""


_off: _Off | None = None


def _stage_or_none(value: Any) -> Stage | None:
    return value if value.__class__ is Stage else None


def active() -> Stage | None:
    """The active stage of this thread, or None.

    Examples:
        >>> with hlotag.stage("hlotag-resolve,hlotag-finalize"):
        ...     hlotag.active().pipeline
        'hlotag-resolve,hlotag-finalize'
    """
    return None if _context is None else _stage_or_none(_context.value)


def of_process() -> Stage | None:
    """The stage of threads outside of blocks."""
    return None if _context is None else _stage_or_none(_context.get_global())


def set_for_process(stage: Stage | None) -> None:
    """Changes `of_process()`.

    What a thread traces meanwhile is half in each stage, and JAX caches it under the stage at its start. So no later stage has
    the identity of that one.
    """
    global _off  # noqa: PLW0603
    context, before = _user_context(), of_process()
    if before is not stage and _compat.tracing.runs_jax():
        if before is None:
            _off = _Off()
        else:
            with _lock:
                _unique.pop(_key(before), None)
    context.set_global(_off if stage is None else stage)


def set_for_thread(stage: Stage | None) -> Callable[[], None]:
    """Sets `active()` for this thread, and returns a function that restores it. None turns the stage of the process off there."""
    entered = _user_context()(_off if stage is None else stage)
    entered.__enter__()
    return partial(entered.__exit__, None, None, None)
