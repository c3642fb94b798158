# SPDX-License-Identifier: Apache-2.0
"""The profile of a program: it is audited, run while JAX's profiler traces it, and joined with its trace."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.stages
from jax.profiler import StepTraceAnnotation

from hlotag._util.arguments import check_flag, check_no_parameters
from hlotag._util.progress import step
from hlotag.audits.collect import Audited, audit_and_compile
from hlotag.audits.render import as_json
from hlotag.audits.report import OFF, Reported
from hlotag.errors import ArgumentError, HlotagError
from hlotag.profiles import trace
from hlotag.profiles.join import profile_of
from hlotag.profiles.program import Program
from hlotag.profiles.views import Profile

# A command buffer, which XLA makes a CUDA graph, is one event without its instructions: https://github.com/openxla/xprof/issues/3070
_NO_COMMAND_BUFFERS = {"xla_gpu_enable_command_buffer": ""}
OPTIONS = {"cuda": _NO_COMMAND_BUFFERS, "rocm": _NO_COMMAND_BUFFERS, "gpu": _NO_COMMAND_BUFFERS}
_WARM_UP = 2  # calls: the first one allocates, the second one may still fill caches
_STEPS = 10  # calls that are traced by default
_UNTRACED = 3  # calls without the profiler, at most
_ROUNDS = 5  # turns of two programs


def profile(
    fun: Callable[..., Any] | None = None,
    /,
    *args: Any,
    steps: int | None = None,
    by: str | Sequence[str] | None = None,
    trace_dir: str | os.PathLike[str] | None = None,
    audit: Reported | str | os.PathLike[str] | None = None,
    memory: bool | None = None,
    **kwargs: Any,
) -> Profile:
    """Finds out how much time the operations with each tag take, forward, backward and recomputed.

    Compiles a function in the active stage, runs it, and traces it with JAX's profiler. Or reads a trace that was made elsewhere.
    On GPUs, the function is compiled without command buffers, whose instructions a trace does not name.

    Tags of the program count, whether XLA kept them or not. An instruction that computes several operations is divided among them
    by their work.

    Args:
        fun: A function, jitted or not, a `jax.stages.Lowered` or a `jax.stages.Compiled`. It is compiled as for `hlotag.audit`,
            and called 2 times to warm up, up to 3 times without the profiler, and `steps` times with it. A function with
            effects, such as one that trains a model in place, has them in each call.
        *args: Its arguments, arrays. Those that it donates are copied for each call.
        steps: How many calls are traced; 10 by default.
        by: What to group by: the key of a tag; `source`, a line of the program; `scope`, or `scope:2` for the first two names of
            a scope; `operation`; or several of them, whose values are combined: `by=("layer", "block")`. By default, each key.
        trace_dir: The folder or `.xplane.pb` file of a trace, instead of `fun`.
        audit: The audit of the traced program, or the file of its JSON; needed with `trace_dir`.
        memory: Whether to find what is in memory at the program's peak, too: a table and a section of the page.
        **kwargs: The function's keyword arguments. Pass those that are called as an option by position.

    Returns:
        The profile. On a machine with several devices, the mean of those that ran the program.

    Raises:
        ArgumentError: Neither or both of `fun` and `trace_dir` are given; `by` names a key that no operation has; or an option
            is also a parameter of the function.
        ParseError: The program did not run in the trace, or a file is no trace or no audit.
        OSError: A file cannot be read.
        HlotagError: A trace is being made already.

    Examples:
        >>> def f(x):
        ...     with hlotag.tagged({"layer": "1"}):
        ...         return jnp.tanh(x @ x)
        >>> with hlotag.stage():
        ...     profile = hlotag.profile(f, jnp.ones((256, 256)))
        >>> sorted({row.value for row in profile.rows if row.key == "layer" and row.seconds})
        ['1']
    """
    if (fun is None) == (trace_dir is None):
        raise ArgumentError("hlotag.profile needs a function and its arguments, or trace_dir= and audit=")
    given = {"steps": steps, "by": by, "trace_dir": trace_dir, "audit": audit, "memory": memory}
    check_no_parameters("hlotag.profile", fun, given, "profile functools.partial(f, ...), which holds it")
    steps = _STEPS if steps is None else steps
    _check_steps(steps)
    check_flag("memory=", bool(memory) if memory is None else memory)
    if fun is not None:
        if not (callable(fun) or isinstance(fun, jax.stages.Lowered)):
            raise ArgumentError(f"hlotag.profile needs a function, a Lowered or a Compiled, not {type(fun).__name__}")
        if audit is not None:
            raise ArgumentError("audit= goes with trace_dir=; leave it out: a function is audited before it runs")
        runner = _Runner(fun, args, kwargs, by, memory=bool(memory))
        untraced = runner.measure(min(steps, _UNTRACED))
        runner.trace(steps)
        return runner.profile(by, untraced)
    if args or kwargs or audit is None:
        raise ArgumentError("trace_dir= needs audit=, the audit of the traced program or the file of its JSON, and no arguments")
    return profile_trace(Path(trace_dir or ""), audit, by)


def _check_steps(steps: int) -> None:
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise ArgumentError(f"steps={steps!r}: give the number of calls to trace, 1 or more")


def profile_trace(path: Path, audit: Reported | str | os.PathLike[str], by: str | Sequence[str] | None = None) -> Profile:
    """Joins a trace, a folder or an `.xplane.pb` file, with the audit of the program or its JSON's file.

    `by` is as for `profile`. Raises ParseError if a file cannot be read, or the program did not run in the trace.
    """
    if not isinstance(audit, Reported):
        audit = as_json.loads(Path(audit).read_text(encoding="utf-8"), os.fspath(audit))
    program = Program(audit)
    with step("reading the trace"):
        return profile_of(program, trace.read(trace.find(path), program.name, program.kernels), by, may_warm_up=True)


def profile_both(
    before: tuple[Callable[..., Any], Sequence[Any]],
    now: tuple[Callable[..., Any], Sequence[Any]],
    *,
    steps: int = _STEPS,
    by: str | Sequence[str] | None = None,
) -> tuple[Profile, Profile]:
    """Profiles two programs that run in turns, so that what else the machine does slows both alike.

    Args:
        before: A function and its arguments, as for `hlotag.profile`.
        now: The other function and its arguments.
        steps: How many calls of each are traced.
        by: As for `hlotag.profile`.

    Returns:
        Both profiles. `hlotag.profiles.changes(now, before)` says which rows differ.

    Raises:
        ArgumentError: As `hlotag.profile`.

    Examples:
        >>> def f(x, power):
        ...     with hlotag.tagged({"layer": "1"}):
        ...         return x @ x if power == 2 else x @ x @ x
        >>> x = jnp.ones((256, 256))
        >>> with hlotag.stage():
        ...     before, now = hlotag.profiles.profile_both((lambda x: f(x, 2), [x]), (lambda x: f(x, 3), [x]), steps=2)
        >>> len(before.steps), len(now.steps)
        (2, 2)
    """
    _check_steps(steps)
    runners = [_Runner(fun, args, {}, by) for fun, args in (before, now)]
    rounds = min(steps, _ROUNDS)
    for number in range(rounds):
        for runner in runners:
            runner.trace(steps // rounds + (number < steps % rounds))
    first, second = (runner.profile(by) for runner in runners)
    return first, second


class _Runner:
    """A program that runs, and is traced. Raises ArgumentError as `profile`, before the program runs."""

    def __init__(
        self, fun: Any, args: Sequence[Any], kwargs: dict[str, Any], by: str | Sequence[str] | None, *, memory: bool = False
    ) -> None:
        self._audited = audit_and_compile(fun, args, kwargs, memory=memory, options=OPTIONS)
        self._program = Program(self._audited.audit)
        self._program.grouping(by)
        self._call = _caller(fun, self._audited, args, kwargs)
        self._traces: list[list[trace.Device]] = []
        for _ in range(_WARM_UP):
            self._call(nullcontext)

    def trace(self, steps: int) -> None:
        """Traces some steps."""
        with tempfile.TemporaryDirectory(prefix="hlotag-") as folder:
            with step("tracing"), tracing(folder):
                for number in range(steps):
                    self._call(partial(StepTraceAnnotation, "step", step_num=number))
            with step("reading the trace"):
                self._traces.append(trace.read(trace.find(Path(folder)), self._program.name, self._program.kernels))

    def measure(self, steps: int) -> float:
        """Seconds of a step without the profiler: the median of some steps."""
        with step("running"):
            return statistics.median([self._call(nullcontext) for _ in range(steps)])

    def profile(self, by: str | Sequence[str] | None, untraced_seconds: float | None = None) -> Profile:
        """The profile of all traces."""
        audit, (*earlier, devices) = self._audited.audit, self._traces
        about = {"untraced_seconds": untraced_seconds, "source_root": audit.source_root}
        found = profile_of(self._program, devices, by, earlier=earlier, **about)
        return replace(found, notes=(*found.notes, OFF)) if audit.is_off and self._program.keys else found


def _caller(fun: Any, audited: Audited, args: Sequence[Any], kwargs: dict[str, Any]) -> Callable[[Any], float]:
    """Returns what calls the program in a context and waits for its results, and returns how many seconds that took."""
    # The compiled program takes no static arguments, and wrappers of other libraries change the arguments: then call the wrapper.
    is_plain = jax.tree.structure((tuple(args), kwargs)) == audited.compiled.in_tree
    is_compiled = isinstance(fun, (jax.stages.Lowered, jax.stages.Compiled))
    run = audited.compiled if is_plain or is_compiled else fun if hasattr(fun, "lower") else jax.jit(fun)
    donates = any(info.donated for info in jax.tree.leaves(audited.args_info))

    def call(context: Callable[[], AbstractContextManager[Any]]) -> float:
        given, named = jax.block_until_ready(jax.tree.map(_copy, (tuple(args), kwargs)) if donates else (args, kwargs))
        with context():  # An annotation begins when it is made.
            start = time.perf_counter()
            jax.block_until_ready(run(*given, **named))
            return time.perf_counter() - start

    return call


def _copy(leaf: Any) -> Any:
    return leaf.copy() if isinstance(leaf, jax.Array) else leaf


@contextmanager
def tracing(folder: str) -> Iterator[None]:
    """Traces a block with JAX's profiler. Raises HlotagError if a trace is being made already."""
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0  # Calls of Python are many events, and none of them is an instruction.
    try:
        jax.profiler.start_trace(folder, profiler_options=options)
    except RuntimeError as error:
        raise HlotagError(f"JAX's profiler cannot start: {error}") from None
    try:
        yield
    finally:
        jax.profiler.stop_trace()
