# SPDX-License-Identifier: Apache-2.0
"""The profile of a program: it is audited, run while JAX's profiler traces it, and joined with its trace."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import jax
import jax.stages
from jax.profiler import StepTraceAnnotation

from hlotag._util.arguments import check_flag, check_keywords
from hlotag._util.progress import step
from hlotag.audits.audit import Audit, read_audit
from hlotag.audits.collect import Audited, audit_and_compile
from hlotag.errors import ArgumentError, HlotagError
from hlotag.profiles import embedded, trace
from hlotag.profiles.join import profile_of
from hlotag.profiles.limits import device_kind, find_limits, resolve_limits
from hlotag.profiles.profile import Profile
from hlotag.profiles.program import Program
from hlotag.profiles.trace import Trace
from hlotag.results.report import OFF
from hlotag.results.times import Limits

# A command buffer, which XLA makes a CUDA graph, is one event without its instructions: https://github.com/openxla/xprof/issues/3070
_NO_COMMAND_BUFFERS = {"xla_gpu_enable_command_buffer": ""}
_OPTIONS = {"cuda": _NO_COMMAND_BUFFERS, "rocm": _NO_COMMAND_BUFFERS, "gpu": _NO_COMMAND_BUFFERS}
_WITHOUT_BUFFERS = (
    "The program was compiled without command buffers, of which a trace does not name all kernels. With them, a step of small "
    "kernels is shorter."
)
_FROM_TRACE = "Scopes, lines and tags are those of the trace's own module. With --audit, each operation has its own."
_WARM_UP = 2  # calls: the first one allocates, the second one may still fill caches
_STEPS = 10  # calls that are traced by default
_UNTRACED = 3  # calls without the profiler, at most


def profile(
    fun: Callable[..., Any],
    /,
    *args: Any,
    steps: int = _STEPS,
    by: str | Sequence[str] | None = None,
    memory: bool = False,
    limits: Limits | str | os.PathLike[str] | None = None,
    kwargs: Mapping[str, Any] | None = None,
) -> Profile:
    """Finds out how much time the operations with each tag take, forward, backward and recomputed.

    Compiles a function in the active stage, runs it, and traces it with JAX's profiler. `read_profile` reads a trace that was
    made elsewhere. On GPUs, the function is compiled without command buffers, whose instructions a trace does not name.

    Tags of the program count, whether XLA kept them or not. An instruction that computes several operations is divided among them
    by their work.

    Args:
        fun: A function, jitted or not, a `jax.stages.Lowered` or a `jax.stages.Compiled`. It is compiled as for `hlotag.audit`,
            and called 2 times to warm up, up to 3 times without the profiler, and `steps` times with it. A function with
            effects, such as one that trains a model in place, has them in each call.
        *args: Its arguments, arrays. Those that it donates are copied for each call.
        steps: How many calls are traced.
        by: What to group by: the key of a tag; `source`, a line of the program; `scope`, or `scope:2` for the first two names of
            a scope; `operation`; or several of them, whose values are combined: `by=("layer", "block")`. By default, each key.
        memory: Whether to find what is in memory at the program's peak, too: a table and a section of the page.
        limits: The most that the device can do, for the rows' shares of it: `"measure"` to measure it for two seconds; a kind of
            device, `"NVIDIA H200"`; a TOML file of limits; or `hlotag.profiles.Limits`. By default, published figures of the
            device, if hlotag has them.
        kwargs: The function's keyword arguments: `hlotag.profile(step, x, kwargs={"training": True})`.

    Returns:
        The profile. On a machine with several devices, the mean of those that ran the program.

    Raises:
        ArgumentError: `fun` is something else or runs no instruction, `by` names a key that no operation has, or there is no file
            of limits.
        HlotagError: A trace is being made already.
        ParseError: The file of limits is not one, or lacks the device.
        OSError: The file of limits cannot be read.

    Examples:
        >>> def f(x):
        ...     with hlotag.tagged({"layer": "1"}):
        ...         return jnp.tanh(x @ x)
        >>> with hlotag.stage():
        ...     profile = hlotag.profile(f, jnp.ones((256, 256)))
        >>> sorted({row.value for row in profile.rows if row.key == "layer" and row.seconds})
        ['1']
    """
    _check_steps(steps)
    check_flag("memory=", memory)
    if not (callable(fun) or isinstance(fun, jax.stages.Lowered)):
        raise ArgumentError(
            f"hlotag.profile needs a function, a Lowered or a Compiled, not {type(fun).__name__}; "
            "hlotag.read_profile reads a trace"
        )
    found = None if limits is None else resolve_limits(limits, device_kind())
    return _run(Runner(fun, args, check_keywords(kwargs), by, memory=memory), by, steps, found)


def can_run(fun: Any, args: Any) -> bool:
    """Whether a program has what it runs on: a function, and arguments, a pytree, that are not only shapes."""
    return callable(fun) and not any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in jax.tree.leaves(args))


def profile_in_full(
    fun: Callable[..., Any],
    args: Sequence[Any],
    *,
    by: str | Sequence[str] | None = None,
    steps: int = _STEPS,
    limits: Limits | str | os.PathLike[str] | None = None,
    effects: bool = True,
) -> Profile:
    """Profiles a function with all that a page shows: memory, and the effects of its tags. Arguments are those of `profile`."""
    _check_steps(steps)
    found = None if limits is None else resolve_limits(limits, device_kind())
    return _run(Runner(fun, args, {}, by, memory=True, effects=effects), by, steps, found)


def _run(runner: Runner, by: str | Sequence[str] | None, steps: int, limits: Limits | None) -> Profile:
    untraced = runner.measure(min(steps, _UNTRACED))
    runner.trace(steps)
    return runner.profile(by, untraced, limits)


def _check_steps(steps: int) -> None:
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise ArgumentError(f"steps={steps!r}: give the number of calls to trace, 1 or more")


def read_profile(
    path: str | os.PathLike[str],
    audit: Audit | str | os.PathLike[str] | None = None,
    by: str | Sequence[str] | None = None,
    *,
    module: str | None = None,
    limits: Limits | str | os.PathLike[str] | None = None,
) -> Profile:
    """Reads a trace that JAX's profiler made elsewhere, or the JSON that `Profile.to_json` wrote.

    Slow first steps are left out. A step is what `StepTraceAnnotation` marks, else a run of the program.

    Args:
        path: The folder or `.xplane.pb` file of the trace; or a file `.json`, which needs no other argument.
        audit: The audit of the traced program, or the file of its JSON. Without one, the trace's own module says what each
            instruction computes: by its scope, line and tags, and not by those of operations that XLA merged with others.
        by: As for `hlotag.profile`.
        module: Without an audit, the name of the program, `jit_step`, or with its number, `jit_step(6)`, where several programs
            have one name. By default the one with most time.
        limits: As for `hlotag.profile`. By default none: a trace does not say which kind of device it is of.

    Returns:
        The profile.

    Raises:
        ArgumentError: `by` names a key that no operation has, or there is no file of limits.
        ParseError: The program did not run in the trace, the audit is of another program, or a file is no trace or no audit.
        OSError: A file cannot be read.

    Examples:
        >>> f = jax.jit(lambda x: hlotag.tag(x @ x, {"layer": "1"}))
        >>> x = jnp.ones((64, 64))
        >>> import tempfile
        >>> with hlotag.stage(), tempfile.TemporaryDirectory() as folder:
        ...     audit = hlotag.audit(f, x)
        ...     with jax.profiler.trace(folder):
        ...         _ = jax.block_until_ready(f(x))
        ...     profile = hlotag.read_profile(folder, audit)
        >>> profile.name
        'jit__lambda'
    """
    if Path(path).suffix == ".json":
        if any(each is not None for each in (audit, by, module, limits)):
            raise ArgumentError(f"{path} is a profile that was made before: it is read without further arguments")
        return Profile.from_json(Path(path).read_text(encoding="utf-8"), os.fspath(path))
    if audit is not None and module is not None:
        raise ArgumentError(f"module={module!r} goes without an audit, which names the program")
    if audit is not None and not isinstance(audit, Audit):
        audit = read_audit(audit)
    most = None if limits is None else resolve_limits(limits, "")
    with step("reading the trace"):
        traced = Trace(trace.find(Path(path)))
        if audit is None:
            program, notes = embedded.program_traced(traced, module)
            notes = [*notes, _FROM_TRACE]
        else:
            program, notes = embedded.program_of(audit, traced)
        found = profile_of(program, program.read(traced), by, may_warm_up=True, limits=most)
        return replace(found, notes=(*found.notes, *notes))


class Runner:
    """A program that runs, and is traced. Raises ArgumentError as `profile`, before the program runs.

    `effects` and `memory` are as for `hlotag.audit`, `options` are XLA's.
    """

    def __init__(
        self,
        fun: Any,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        by: str | Sequence[str] | None,
        *,
        memory: bool = False,
        effects: bool = False,
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        asked = {"memory": memory, "compare": effects}
        self._audited = audit_and_compile(fun, args, kwargs, lambda platform: {**options_of(platform), **options}, **asked)
        if not self.audit.instructions:
            raise ArgumentError(f"{self.audit.name} has no instruction that runs, so there is nothing to profile")
        self._program = Program(self.audit)
        self._program.grouping(by)
        self._call = _Call(fun, self._audited, args, kwargs)
        self._step = 0
        self._traces: list[list[trace.Device]] = []
        self._notes: list[str] = []
        for _ in range(_WARM_UP):
            self._call.time()

    @property
    def audit(self) -> Audit:
        """The program's audit."""
        return self._audited.audit

    def results(self) -> Any:
        """What a call returns."""
        return self._call.run()

    def trace(self, steps: int) -> None:
        """Traces some steps."""
        with self.tracing(), step("tracing"):
            for _ in range(steps):
                self.time_step()

    @contextmanager
    def tracing(self) -> Iterator[None]:
        """Traces the steps of a block, and reads the trace."""
        with tempfile.TemporaryDirectory(prefix="hlotag-") as folder:
            with tracing(folder):
                yield
            with step("reading the trace"):
                traced = Trace(trace.find(Path(folder)))
                if not self._traces:
                    self._program, self._notes = embedded.program_of(self.audit, traced)
                self._traces.append(self._program.read(traced))

    def time_step(self) -> float:
        """Runs a step, which a trace shows as one. Returns its seconds."""
        self._step += 1
        return self._call.time(partial(StepTraceAnnotation, "step", step_num=self._step))

    def forget(self) -> None:
        """Forgets the traces."""
        self._traces.clear()

    def measure(self, steps: int) -> float:
        """Seconds of a step without the profiler: the median of some steps."""
        with step("running"):
            return statistics.median([self._call.time() for _ in range(steps)])

    def profile(
        self, by: str | Sequence[str] | None, untraced_seconds: float | None = None, limits: Limits | None = None
    ) -> Profile:
        """The profile of all traces. `limits` are those of the device by default."""
        *earlier, devices = self._traces
        limits = limits or find_limits(device_kind(self.audit.platform))
        about = {"untraced_seconds": untraced_seconds, "source_root": self.audit.source_root, "limits": limits}
        found = profile_of(self._program, devices, by, earlier=earlier, **about)
        notes = [OFF] if self.audit.is_off and self._program.keys else []
        return replace(found, notes=(*found.notes, *self._notes, *notes, *notes_of(self.audit.platform)))


def options_of(platform: str) -> Mapping[str, Any]:
    """Options of the compiler without which a trace does not name what ran on JAX's platform."""
    return _OPTIONS.get(platform, {})


def notes_of(platform: str) -> list[str]:
    """What to say of a program that was compiled with `options_of`."""
    return [_WITHOUT_BUFFERS] if options_of(platform) else []


class _Call:
    """Calls of the compiled program."""

    def __init__(self, fun: Any, audited: Audited, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        # The compiled program takes no static arguments, and wrappers of other libraries change the arguments: then call the
        # wrapper.
        is_plain = jax.tree.structure((tuple(args), kwargs)) == audited.compiled.in_tree
        is_compiled = isinstance(fun, (jax.stages.Lowered, jax.stages.Compiled))
        self._run = audited.compiled if is_plain or is_compiled else fun if hasattr(fun, "lower") else jax.jit(fun)
        self._donates = any(info.donated for info in jax.tree.leaves(audited.args_info))
        self._given = tuple(args), kwargs

    def run(self) -> Any:
        """Returns the results."""
        args, kwargs = self._arguments()
        return jax.block_until_ready(self._run(*args, **kwargs))

    def time(self, context: Callable[[], AbstractContextManager[Any]] = nullcontext) -> float:
        """Calls the program in a context, waits for its results, and returns how many seconds that took."""
        args, kwargs = self._arguments()
        with context():  # An annotation begins when it is made.
            start = time.perf_counter()
            jax.block_until_ready(self._run(*args, **kwargs))
            return time.perf_counter() - start

    def _arguments(self) -> Any:
        return jax.block_until_ready(jax.tree.map(_copy, self._given) if self._donates else self._given)


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
