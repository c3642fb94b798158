# SPDX-License-Identifier: Apache-2.0
"""The stage: hlotag's passes between JAX's lowering and everything that reads its result."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hlotag import _compat, _host, marks, tracing
from hlotag.errors import PipelineError
from hlotag.pipeline import DEFAULT_PIPELINE, pipeline_text, run_passes
from hlotag.rules import Rule, with_rules
from hlotag.state import Stage, active, context
from hlotag.tags import tag_equations


def enable(pipeline: str = DEFAULT_PIPELINE, rules: Sequence[Rule] = ()) -> None:
    """Turns the stage on for the whole process, all threads included.

    Programs that were traced before stay as they were; calling them again traces them anew, with their tags.

    Args:
      pipeline: passes to run on every module; MLIR's syntax.
      rules: ops to tag by kind, scope or source, besides those that the program tags itself.

    Raises:
      PipelineError: the pipeline names a pass or an option that does not exist.
      IncompatibleJaxlibError: this jaxlib cannot run the passes.
    """
    new = _make(pipeline, rules)
    if context.get_global() is None:
        _hooks.retain()
    context.set_global(new)


def disable() -> None:
    """Turns the process-wide stage off and takes hlotag's hooks out of JAX, unless a `stage(...)` block is still using them."""
    if context.get_global() is None:
        return
    context.set_global(None)
    _hooks.release()


@contextmanager
def stage(pipeline: str | None = DEFAULT_PIPELINE, rules: Sequence[Rule] = ()) -> Iterator[Stage | None]:
    """The stage for this thread and this block only; blocks nest.

    Args:
      pipeline: as for `enable`; None turns the stage off within the block.
      rules: as for `enable`.

    Raises:
      PipelineError, IncompatibleJaxlibError: as for `enable`.
    """
    new = None if pipeline is None else _make(pipeline, rules)
    _hooks.retain()
    try:
        with context(new):
            yield new
    finally:
        _hooks.release()


def _make(pipeline: str, rules: Sequence[Rule]) -> Stage:
    from hlotag import __version__

    if not isinstance(pipeline, str):
        raise PipelineError(f"pipeline must be a string such as {DEFAULT_PIPELINE!r}, got {type(pipeline).__name__}")
    _host.ensure()
    return Stage(pipeline_text(with_rules(pipeline, rules)), __version__)


def _lower(original: Any, module_name: str, jaxpr: Any, *args: Any, **kwargs: Any) -> Any:
    """Lowers `jaxpr` by JAX's own function and runs the stage on the module."""
    now = active()
    if now is None:
        return original(module_name, jaxpr, *args, **kwargs)
    marker = marks.Marker()
    jaxpr = marker.mark(jaxpr)
    # Lowering rules may trace; what they trace is named after the marked equation and must not pick up metadata besides.
    with _compat.ambient_metadata_is({}):
        result = original(module_name, jaxpr, *args, **kwargs)
    if marker.table:
        marks.attach_table(result.module, marker.table)
    run_passes(result.module, now.pipeline)
    return result


def _tag_value(value: Any, metadata: dict[str, Any]) -> bool:
    """JAX's own value tag, when the stage is on: the equations behind the value get it, and no marker is staged."""
    if active() is None:
        return False
    tag_equations(value, metadata)
    return True


class _Hooks:
    """The patches, which are in JAX while anybody uses them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._patches = (*tracing.PATCHES, _compat.value_tag_patch(_tag_value), _compat.lowering_patch(_lower))

    def retain(self) -> None:
        with self._lock:
            if self._users == 0:
                for patch in self._patches:
                    patch.install()
            self._users += 1

    def release(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                for patch in reversed(self._patches):
                    patch.remove()


_hooks = _Hooks()
