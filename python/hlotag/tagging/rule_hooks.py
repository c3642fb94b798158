# SPDX-License-Identifier: Apache-2.0
"""Hooks in JAX that tell the rules of a stage what this thread traces: scopes, functions, operations and lines."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from hlotag import _compat
from hlotag.tagging.matching import OF_LOWERING, OwnValue, RuleSet
from hlotag.tagging.state import active

# Names of scopes that JAX opens itself.
_OF_JAX = ("checkpoint", "rematted_computation")


class _Thread(threading.local):
    """What one thread does.

    Attributes:
        is_lowering: Whether it lowers a program. What is traced meanwhile belongs to the lowered equation.
        scopes: The scopes that it entered under rules, and the metadata outside of them.
    """

    is_lowering = False

    def __init__(self) -> None:
        self.scopes: list[tuple[Any, Any]] = []


_thread = _Thread()


_OF_LOWERING = OwnValue()


@contextmanager
def lowering() -> Iterator[None]:
    """A block in which this thread lowers a program, without the metadata of open blocks."""
    outer = _thread.is_lowering
    try:
        _thread.is_lowering = True
        with _compat.tracing.ambient_metadata_is({OF_LOWERING: _OF_LOWERING}):
            yield
    finally:
        _thread.is_lowering = outer


def _current() -> RuleSet | None:
    """The rules for what this thread traces."""
    stage = active()
    return None if stage is None or _thread.is_lowering else stage.rules


def _enter(original: Callable, scope: Any) -> Any:
    names = original(scope)
    if (rules := _current()) is not None and rules.has_scopes and scope.name not in _OF_JAX:
        ambient = _compat.recording.ambient()
        within = rules.extend_scope(ambient, scope.name)
        if len(rules.seen) < 4096:
            rules.seen[_compat.recording.scope_path()] = None
        if within is not ambient:
            _compat.tracing.restore_ambient_metadata(within)
            _thread.scopes.append((scope, ambient))
    return names


def _leave(original: Callable, scope: Any, *exc_info: Any) -> Any:
    entered = _thread.scopes
    for place in reversed(range(len(entered))):
        if entered[place][0] is scope:
            _compat.tracing.restore_ambient_metadata(entered[place][1])
            del entered[place:]
            break
    return original(scope, *exc_info)


def _call(original: Callable, fun: Any, *args: Any) -> Any:
    rules = _current()
    if rules is None or not rules.has_calls:
        return original(fun, *args)
    ambient = _compat.recording.ambient()
    within = rules.enter_call(ambient, getattr(fun, "__name__", ""), not _compat.tracing.is_recording())
    try:
        _compat.tracing.restore_ambient_metadata(within)
        return original(fun, *args)
    finally:
        _compat.tracing.restore_ambient_metadata(ambient)


def _bind(ambient: Any, primitive: Any, args: tuple[Any, ...], params: Mapping[str, Any]) -> Any:
    rules = _current()
    return ambient if rules is None else rules.enter_bind(ambient, primitive, args, params)


def _record(ambient: Any, traceback: Any) -> Any:
    rules = _current()
    return ambient if rules is None or not rules.has_sources else rules.recording(ambient, traceback)


PATCHES = (
    *_compat.recording.operation_patches(_bind, _record),
    *_compat.recording.name_stack_patches(_enter, _leave),
    _compat.recording.jit_patch(_call),
)


def switches_for(rules: RuleSet | None) -> list[Any]:
    """The switches of what a stage with these rules needs."""
    needs = {"has_ops": _compat.recording.OPS, "has_sources": _compat.recording.SOURCES}
    return [] if rules is None else [switch for need, switch in needs.items() if getattr(rules, need)]
