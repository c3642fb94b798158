# SPDX-License-Identifier: Apache-2.0
"""How does a variant run? Compiled, warm, and then for some steps at a time, in this process or in one of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import jax

from hlotag.audits.audit import Audit
from hlotag.audits.collect import audit_and_compile
from hlotag.comparisons.results import compare_results, write_results
from hlotag.comparisons.variants import Variant
from hlotag.errors import HlotagError
from hlotag.lowering.staging import under, with_rules
from hlotag.profiles.profile import Profile
from hlotag.profiles.record import Runner, can_run
from hlotag.results.grouping import Grouping
from hlotag.tagging.state import Stage


@dataclass(frozen=True)
class Prepared:
    """A variant that is compiled and warm.

    Attributes:
        audit: Its audit, with memory.
        results: How its results differ from those of the first variant.
        seconds: The length of a step; 0 if nothing runs.
    """

    audit: Audit
    results: str
    seconds: float


class VariantError(HlotagError):
    """A variant cannot be compiled or run.

    Attributes:
        name: The variant.
    """

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


class Subject(Protocol):
    """A variant that runs.

    Attributes:
        name: The variant.
        has_own_process: Whether it can be traced at once with others.
    """

    name: str
    has_own_process: bool

    def prepare(self, results: Path, *, effects: bool) -> Prepared:
        """Compiles and warms up. Raises VariantError.

        Args:
            results: The file with the results of the first variant; it is written if it does not exist.
            effects: Whether to compare with the program without its tags.
        """
        ...

    def time_step(self) -> float:
        """Runs a step. Returns its seconds."""
        ...

    def tracing(self) -> AbstractContextManager[None]:
        """A block whose steps are traced. The trace is read at its end."""
        ...

    def profile(self, by: Grouping | None) -> Profile:
        """The profile of all traces."""
        ...

    def forget(self) -> None:
        """Forgets the traces."""
        ...

    def restart(self) -> None:
        """Prepares it in a new process, if it has one of its own. Raises VariantError."""
        ...

    def close(self) -> None:
        """Ends it."""
        ...


class Here:
    """A variant in this process, which ends with it if XLA's compiler crashes."""

    has_own_process = False

    def __init__(
        self, name: str, variant: Variant, fun: Any, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None
    ) -> None:
        self.name = name
        self._variant = variant
        self._fun = variant.fun or fun
        self._args = args if variant.args is None else variant.args
        self._kwargs = dict((kwargs if variant.kwargs is None else variant.kwargs) or {})
        self._runner: Runner | None = None
        self._stage: Stage | None = None

    def prepare(self, results: Path, *, effects: bool) -> Prepared:
        """As `Subject.prepare`."""
        try:
            with with_rules(self._variant.read_rules()) as self._stage:
                return self._prepare(results, effects=effects)
        except Exception as error:
            words = str(error).strip() or type(error).__name__
            is_clear = isinstance(error, (HlotagError, jax.errors.JaxRuntimeError))
            raise VariantError(self.name, words if is_clear else f"{type(error).__name__}: {words}") from error

    def _prepare(self, results: Path, *, effects: bool) -> Prepared:
        options, args, kwargs = self._variant.options, self._args, self._kwargs
        if not can_run(self._fun, (args, kwargs)):
            audited = audit_and_compile(self._fun, args, kwargs, lambda _: options, memory=True, compare=effects)
            return Prepared(audited.audit, "", 0.0)
        self._runner = Runner(self._fun, args, kwargs, None, memory=True, effects=effects, options=options)
        found = ""
        if results.exists():
            found = compare_results(self._runner.results(), results)
        else:
            write_results(self._runner.results(), results)
        return Prepared(self._runner.audit, found, self._runner.measure(1))

    def time_step(self) -> float:
        """As `Subject.time_step`."""
        try:
            with under(self._stage):
                return self._running.time_step()
        except Exception as error:
            raise VariantError(self.name, f"{type(error).__name__}: {error}") from error

    def tracing(self) -> AbstractContextManager[None]:
        """As `Subject.tracing`."""
        return self._running.tracing()

    def profile(self, by: Grouping | None) -> Profile:
        """As `Subject.profile`."""
        return self._running.profile(by)

    def forget(self) -> None:
        """As `Subject.forget`."""
        self._running.forget()

    def restart(self) -> None:
        """As `Subject.restart`: it has no process of its own."""

    def close(self) -> None:
        """As `Subject.close`."""
        self._runner = None

    @property
    def _running(self) -> Runner:
        if self._runner is None:
            raise TypeError(f"{self.name} does not run")
        return self._runner
