# SPDX-License-Identifier: Apache-2.0
"""`enable`, `disable` and `stage`: hlotag's passes on the modules that JAX lowers."""

from __future__ import annotations

import atexit
import dataclasses
import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, get_args

from hlotag import _compat
from hlotag._util import interrupts
from hlotag._util.arguments import check_choice, check_flag, show
from hlotag._util.forks import free_in_children
from hlotag._util.kill_switch import forbids_stages
from hlotag._util.version import VERSION
from hlotag.errors import ArgumentError, PassError, PassFailedWarning, TagDroppedWarning
from hlotag.lowering import dump, hlo_pass, kinds
from hlotag.lowering.reproducer import with_reproducer
from hlotag.mlir import connection
from hlotag.passes import python_passes, syntax
from hlotag.passes.pipeline import DEFAULT_PIPELINE, pipeline_text, run_or_raise, run_passes
from hlotag.passes.rules import check_rules
from hlotag.tagging import backward_rules, keys, marks, matching, scopes, state
from hlotag.tagging.decorated import around
from hlotag.tagging.entries import Phased
from hlotag.tagging.keys import as_text
from hlotag.tagging.matched import Report
from hlotag.tagging.matching import RuleSet
from hlotag.tagging.rules import Rule
from hlotag.tagging.state import OnError, Stage, active, unique
from hlotag.tagging.tags import lowered, note_removals, tag_value
from hlotag.tagging.walk import Walk
from hlotag.tagging.warning import warn

# Fail at import, not in the middle of a program.
_compat.check()

# Turns marks into the program's own tags, without propagation.
_MARKS_ONLY = "hlotag-resolve,hlotag-finalize{on-mistake=warning}"


# Held while the process-wide stage, the open blocks or what they use change.
_switching = free_in_children(threading.RLock())


def enable(
    pipeline: str = DEFAULT_PIPELINE,
    rules: Iterable[Rule] = (),
    *,
    hlo: bool | Iterable[str] = True,
    op_names: Iterable[str] = (),
    on_error: OnError = "raise",
    debug_origins: bool = False,
) -> None:
    """Turns the stage on for the whole process, all threads included.

    Programs that were traced before stay unchanged; calling them again traces them anew, with their tags. The environment
    variable `HLOTAG_DISABLE=1` keeps hlotag off.

    Args:
        pipeline: Passes to run on every module, in MLIR's syntax. A pipeline without `hlotag-finalize` gets `hlotag-resolve` at
            its start, which writes the program's tags, and `hlotag-finalize{on-mistake=warning}` at its end, which checks them.
        rules: Tag ops by kind, scope or source, in addition to the program's tags.
        hlo: Whether to restore tags that XLA's passes drop or move; or patterns (`*`, `?`) of the keys to restore.
        op_names: Patterns of keys whose tags are written into the names that profilers get from XLA: XProf, Perfetto and Nsight
            show `jit(f)/{layer=3}/dot_general` for a product with the tag `layer="3"`.
        on_error: When a pass fails on a program, "raise" a `PassError` from the call that lowers it, or "warn"
            (`PassFailedWarning`) and go on with only the program's own tags.
        debug_origins: As for `run_passes`: every module says where its tags come from.

    Raises:
        ArgumentError: The pipeline names a pass or an option that does not exist.
        IncompatibleJaxlibError: This jaxlib cannot run the passes.

    Examples:
        >>> hlotag.enable(rules=[hlotag.Rule({"layer": "1"}, op="dot_general")])
        >>> 'layer = "1"' in jax.jit(jnp.dot).lower(jnp.ones(4), jnp.ones(4)).as_text()
        True
        >>> hlotag.disable()
    """
    if forbids_stages():
        return
    new = _make(pipeline, rules, hlo=hlo, op_names=op_names, on_error=on_error, debug_origins=debug_origins)
    with interrupts.hold(), _switching:
        before = state.of_process()
        _use(new)
        state.set_for_process(new)
        _drop(before)
        reports = _of_process.replace(new)
    _close(*reports)


def disable() -> None:
    """Turns the process-wide stage off.

    Programs that were lowered before and are compiled later go through the HLO pass.

    Examples:
        >>> hlotag.enable()
        >>> hlotag.disable()
        >>> hlotag.active() is None
        True
    """
    with interrupts.hold(), _switching:
        if (before := state.of_process()) is not None:
            state.set_for_process(None)
            _drop(before)
        reports = _of_process.replace(None)
    _close(*reports)


class _Reports:
    """The open reports of what the rules of stages matched."""

    def __init__(self) -> None:
        self._open: list[tuple[RuleSet, Report]] = []

    def begin(self, stage: Stage | None) -> None:
        if stage is not None and stage.rules is not None:
            self._open.append((stage.rules, stage.rules.open_report()))

    def end(self) -> list[tuple[RuleSet, Report]]:
        """Takes the last report, to be closed; nothing if its stage had no rules."""
        return [self._open.pop()] if self._open else []

    def replace(self, stage: Stage | None) -> list[tuple[RuleSet, Report]]:
        """Takes the report to be closed, and begins one for another stage."""
        ended = self.end()
        self.begin(stage)
        return ended


class _ReportsOfThread(_Reports, threading.local):
    """Those of a block, which several threads may enter, each more than once."""


_of_process = _Reports()


def _close(*reports: tuple[RuleSet, Report]) -> None:
    for rules, report in reports:
        rules.close_report(report)


@atexit.register
def _report_at_exit() -> None:
    _close(*_of_process.end())


def stage(
    pipeline: str | None = DEFAULT_PIPELINE,
    rules: Iterable[Rule] = (),
    *,
    hlo: bool | Iterable[str] = True,
    op_names: Iterable[str] = (),
    on_error: OnError = "raise",
    debug_origins: bool = False,
) -> StageBlock:
    """Sets the stage for a block, or for a function, of one thread. Blocks nest.

    asyncio tasks share a thread: leave the block before the next `await`. Lowering in another task meanwhile is a `ScopeError`.

    Args:
        pipeline: As for `enable`; None turns the stage off within the block.
        rules: As for `enable`.
        hlo: As for `enable`.
        op_names: As for `enable`.
        on_error: As for `enable`.
        debug_origins: As for `enable`.

    Returns:
        A context manager, also a decorator, that yields the stage or None. It is reentrant, in every thread.

    Raises:
        ArgumentError, IncompatibleJaxlibError: As for `enable`.
        ArgumentError: The decorated object is not callable, or is a generator or coroutine function, whose body runs after
            the call.

    Examples:
        >>> @hlotag.stage(rules=[hlotag.Rule({"layer": "1"}, op="sine")])
        ... def text():
        ...     return jax.jit(jnp.sin).lower(1.0).as_text()
        >>> 'layer = "1"' in text()
        True
    """
    options: dict[str, Any] = {"hlo": hlo, "op_names": op_names, "on_error": on_error, "debug_origins": debug_origins}
    return StageBlock(None if pipeline is None or forbids_stages() else _make(pipeline, rules, **options), reports=True)


def with_rules(rules: Iterable[Rule]) -> StageBlock:
    """A block in which the active stage, or else that of `enable()`, has further rules."""
    current = active()
    if current is None or forbids_stages():
        return stage(rules=rules)
    before = () if current.rules is None else (*current.rules.rules, *current.rules.inserted.values())
    found = matching.rule_set((*before, *check_rules(rules)))
    return StageBlock(unique(dataclasses.replace(current, rules=found)), reports=True)


class StageBlock:
    """A block, or decorator, that sets the stage of its thread to a given one, or to none.

    Args:
        stage: The stage.
        reports: Whether to warn, at the end, of rules that matched nothing.
    """

    def __init__(self, stage: Stage | None, *, reports: bool = False) -> None:
        self._stage = stage
        self._reports = _ReportsOfThread() if reports else None

    def __enter__(self) -> Stage | None:
        with interrupts.hold():
            scopes.stages.enter(self, lambda: _open(self._stage))
            if self._reports is not None:
                self._reports.begin(self._stage)
        return self._stage

    def __exit__(self, *exc_info: object) -> None:
        with interrupts.hold():
            scopes.stages.leave(self)
            ended = [] if self._reports is None else self._reports.end()
        _close(*ended)

    def __call__(self, function: Callable) -> Callable:
        """Decorates `function`: each call runs in this block."""
        return around(function, self, "with hlotag.stage(...):", ArgumentError)


def under(stage: Stage | None) -> AbstractContextManager[Any]:
    """A block that sets this thread's stage."""
    return nullcontext() if stage is None and active() is None else StageBlock(stage)


def _make(
    pipeline: str,
    rules: Iterable[Rule],
    *,
    hlo: bool | Iterable[str],
    op_names: Iterable[str],
    on_error: OnError,
    debug_origins: bool,
) -> Stage:
    if not isinstance(pipeline, str):
        raise ArgumentError(f"pipeline must be a string such as {DEFAULT_PIPELINE!r}, got {type(pipeline).__name__}")
    check_choice("on_error", on_error, get_args(OnError))
    check_flag("debug_origins", debug_origins)
    rules = check_rules(rules)
    if not (hlo is True or _hlo_patterns(hlo)) and (inserted := [rule for rule in rules if rule.inserted]):
        raise ArgumentError(f"hlo=False leaves XLA as it is, so a rule for what it inserts has no effect: {inserted[0].text}")
    connection.ensure()
    text = _complete(pipeline_text(pipeline))
    # Only MLIR knows the passes of others. Fail here rather than in the middle of a program.
    if foreign := [str(element) for element in syntax.parse(text) if element.options is None]:
        run_passes("module {}", foreign)
    new = Stage(
        text,
        VERSION,
        keys.fingerprint(),
        debug_origins=debug_origins,
        hlo=_hlo_patterns(hlo),
        op_names=_patterns("op_names", op_names, "a list of keys"),
        passes=python_passes.fingerprint(),
        on_error=on_error,
        rules=matching.rule_set(rules),
    )
    return unique(new)


def _complete(pipeline: str) -> str:
    """Adds the passes that remove marks, unless the pipeline has `hlotag-finalize`, which fails on marks."""
    names = [element.name for element in syntax.parse(pipeline)]
    if "hlotag-finalize" in names:
        return pipeline
    first = [] if "hlotag-resolve" in names else ["hlotag-resolve"]
    return ",".join([*first, *filter(None, [pipeline]), "hlotag-finalize{on-mistake=warning}"])


def _hlo_patterns(hlo: bool | Iterable[str]) -> tuple[str, ...]:
    if isinstance(hlo, bool):
        return ("*",) if hlo else ()
    patterns = _patterns("hlo", hlo, "True, False or a list of keys such as ['_scheduling_group_id']")
    if not patterns:
        raise ArgumentError("hlo must be True, False or a list of keys, got an empty list; False turns the HLO pass off")
    return patterns


def _patterns(name: str, given: Iterable[str], expected: str) -> tuple[str, ...]:
    patterns = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
    if isinstance(given, str) or not all(isinstance(pattern, str) for pattern in patterns):
        raise ArgumentError(f"{name} must be {expected}, got {show(given)}")
    return tuple(sorted(set(patterns)))


def _lower(original: Any, module_name: str, jaxpr: Any, *args: Any, **kwargs: Any) -> Any:
    """Lowers `jaxpr` by JAX's own function, runs the passes on the module, and prepares it for the HLO pass."""
    current = active()
    if current is None:
        return original(module_name, jaxpr, *args, **kwargs)
    scopes.stages.check()
    scopes.tags.check()
    result = _lower_in(current, original, module_name, jaxpr, *args, **kwargs)
    lowered(jaxpr, result.module)
    hlo_pass.prepare(result.module, current)
    return result


def _lower_marked(walk: Walk, original: Any, module_name: str, jaxpr: Any, *args: Any, **kwargs: Any) -> Any:
    """Lowers a program with the marks of a walk, and attaches their table to its module."""
    marked = walk.rewrite(jaxpr)
    # Lowering rules may trace equations. These have the mark of the lowered equation.
    with _compat.tracing.ambient_metadata_is({}):
        result = original(module_name, marked, *args, **kwargs)
    if walk.has_escapes:
        marks.attach_escaped(result.module)
    if walk.has_marks or walk.rules is not None:
        found = kinds.kinds_of((row.primal for row in walk.table if row.primal is not None), original, kwargs)
        marks.attach_table(result.module, walk.table, walk.rules, found.__getitem__)
    return result


def _lower_in(stage: Stage, original: Any, module_name: str, jaxpr: Any, *args: Any, **kwargs: Any) -> Any:
    def lower(walk: Walk) -> Any:
        return _lower_marked(walk, original, module_name, jaxpr, *args, **kwargs)

    walk = Walk(rules=stage.rules)
    result = lower(walk)
    if walk.has_value_tags:
        warn(
            f"hlotag: {module_name} has value tags that were set while hlotag was off, so they are JAX's own, which autodiff "
            "drops; turn hlotag on before the program is traced (with HLOTAG_ENABLE: use a device first, for example by "
            "jax.devices()), and set them outside of hlotag.stage(None)",
            TagDroppedWarning,
        )
    observe = dump.dump(result.module)
    try:
        options = {"keep_entry": True, "debug_origins": stage.debug_origins, "observe": observe}
        said = run_or_raise(result.module, stage.pipeline, **options)
        if stage.rules is not None:
            stage.rules.note([diagnostic.message for diagnostic in said])
    except PassError as error:
        failure = with_reproducer(error, result.module, stage.pipeline)
        if stage.on_error == "raise":
            raise failure from error.__cause__
        warn(f"hlotag: {failure}", PassFailedWarning)
        try:
            run_or_raise(result.module, _MARKS_ONLY, debug_origins=stage.debug_origins)
        except PassError:  # Better no tags than marks in XLA's names.
            return lower(Walk(blank=True))
    return result


def _block_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """Converts the metadata of JAX's own block to the form of hlotag's blocks, if a stage is active."""
    # JAX also calls this for each equation that it evaluates. Then all values are text already.
    metadata = backward_rules.settle_inherited(metadata)
    for value in metadata.values():
        if type(value) is not str and not isinstance(value, Phased):
            break
    else:
        return metadata
    if active() is None:
        return metadata
    return note_removals({key: as_text(v) if isinstance(v, bool | int | float) else v for key, v in metadata.items()})


PATCHES = (
    *_compat.recording.operation_patches(),
    *backward_rules.PATCHES,
    *marks.PATCHES,
    *_compat.hooks.value_tag_patches(lambda: active() is not None, tag_value),
    _compat.hooks.block_patch(_block_metadata),
    _compat.hooks.lowering_patch(_lower),
    *hlo_pass.PATCHES,
)


def _open(stage: Stage | None) -> Callable[[], None]:
    """Sets the stage of this thread; returns a function that restores the previous one."""
    with _switching:
        _use(stage)
    restore = state.set_for_thread(stage)

    def close() -> None:
        restore()
        with _switching:
            _drop(stage)

    return close


def _use(stage: Stage | None) -> None:
    """Installs the wrappers, and turns on those that a stage needs, before the stage is set."""
    if stage is not None:
        for patch in PATCHES:
            patch.install()
        _count(stage, 1)


def _drop(stage: Stage | None) -> None:
    """Undoes `_use`, after the stage was set. Wrappers stay, and pass through if no other stage needs them."""
    if stage is not None:
        _count(stage, -1)
        if not _compat.hooks.STAGES.uses:
            hlo_pass.release()


def _count(stage: Stage, change: int) -> None:
    _compat.hooks.STAGES.uses += change
    if stage.rules is not None and stage.rules.has_ops:
        _compat.recording.OPS.uses += change
