# SPDX-License-Identifier: Apache-2.0
"""How does a variant of `hlotag compare` run? In a process of its own: a crash of XLA's compiler ends no other variant.

Two checkouts have modules of the same names, too.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlotag._text import printable
from hlotag.comparisons.subjects import Here, Prepared, VariantError
from hlotag.comparisons.variants import Variant
from hlotag.errors import HlotagError

if TYPE_CHECKING:
    from hlotag.profiles.profile import Profile
    from hlotag.results.grouping import Grouping

# What XLA writes when it aborts: `F1128 16:20:01.123456 12345 file.cc:12] Check failed: ...`.
_FATAL = re.compile(r"^F\d{4} [\d:.]+ +\d+ (.*)$", re.MULTILINE)
_USES_RULES = "returns a lowered program, which rules cannot change; return (step, arguments)"


@dataclass(frozen=True)
class Spec:
    """What a variant of the command is.

    Attributes:
        name: The variant.
        program: `train.py:step`.
        rules: The path of a file of rules, or the fields of each rule; empty for none.
        options: XLA's options.
    """

    name: str
    program: str
    rules: str | Sequence[Mapping[str, Any]] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def variant(self) -> Variant:
        """The variant, without its function."""
        from hlotag.tagging.rules import Rule

        rules = self.rules if isinstance(self.rules, str) else tuple(Rule(**each) for each in self.rules)
        return Variant(rules=rules, options=self.options)


class Apart:
    """A variant in a process of its own, with the methods of `comparisons.subjects.Subject`."""

    has_own_process = True

    def __init__(self, spec: Spec, shown: set[str] | None = None) -> None:
        """`shown` are the warnings of other variants, which are not shown again."""
        self.name = spec.name
        self._spec = spec
        self._shown = set[str]() if shown is None else shown
        self._warnings: list[str] = []
        self._process: subprocess.Popen[str] | None = None
        self._results = ""
        self._folder = tempfile.TemporaryDirectory(prefix="hlotag-")
        self._errors = Path(self._folder.name) / "stderr"

    def prepare(self, results: Path, *, effects: bool) -> Prepared:
        """As `Subject.prepare`."""
        from hlotag.audits.audit import Audit

        self._start()
        self._results = str(results)
        found = self._ask("prepare", results=self._results, effects=effects)
        return Prepared(Audit.from_json(found["audit"], self.name), found["results"], found["seconds"])

    def _start(self) -> None:
        # Several processes fit on one GPU only if the first one does not take most of its memory.
        environment = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", **os.environ}
        command = _python("hlotag.cli.processes", json.dumps(asdict(self._spec)))
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "encoding": "utf-8"}
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(command, stderr=errors, env=environment, **pipes)

    def restart(self) -> None:
        """As `Subject.restart`."""
        self._end()
        self._start()
        self._ask("prepare", results=self._results, effects=False)

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def time_step(self) -> float:
        """As `Subject.time_step`."""
        return self._ask("time_step")

    @contextmanager
    def tracing(self) -> Iterator[None]:
        """As `Subject.tracing`."""
        self._ask("start_trace")
        yield
        self._ask("stop_trace")

    def profile(self, by: Grouping | None) -> Profile:
        """As `Subject.profile`."""
        from hlotag.profiles.profile import Profile

        return Profile.from_json(self._ask("profile", by=by), self.name)

    def forget(self) -> None:
        """As `Subject.forget`."""
        self._ask("forget")

    def close(self) -> None:
        """As `Subject.close`."""
        self._end()
        self._folder.cleanup()
        for warning in self._warnings:
            if warning not in self._shown:
                self._shown.add(warning)
                print(printable(warning, keep="\n"), end="", file=sys.stderr)

    def _ask(self, what: str, **arguments: Any) -> Any:
        if self._process is None or self._process.stdin is None or self._process.stdout is None:
            raise TypeError(f"{self.name} does not run")
        try:
            print(json.dumps([what, arguments]), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise VariantError(self.name, self._why_it_ended())
        answer = json.loads(line)
        self._warnings += answer["warnings"]
        if "error" in answer:
            if answer["is_shown"]:
                print(self._said(), end="", file=sys.stderr)
            raise VariantError(self.name, answer["error"])
        return answer["value"]

    def _why_it_ended(self) -> str:
        """What a process said last that ended without an answer: XLA's check that failed, or its last line."""
        status = self._process.wait() if self._process else 0
        said = self._said()
        lines = _FATAL.findall(said) or [line for line in said.splitlines() if line.strip()][-1:]
        how = f"signal {-status}" if status < 0 else f"status {status}"
        return f"its process ended ({how}){f': {lines[0]}' if lines else ''}"

    def _said(self) -> str:
        return self._errors.read_text(encoding="utf-8", errors="replace") if self._errors.exists() else ""


def _python(*arguments: str) -> list[str]:
    """A command that runs a module in this Python, with the current folder on its path if that is on this one's."""
    safe = [] if {"", os.getcwd()} & set(sys.path) else ["-P"]
    return [sys.executable, *safe, "-m", *arguments]


def load_subject(spec: Spec, program: tuple[Any, Sequence[Any]]) -> Here:
    """A loaded program as a variant of this process. Raises VariantError if it is lowered and has rules."""
    function, arguments = program
    if spec.rules and not callable(function):
        raise VariantError(spec.name, f"{spec.program} {_USES_RULES}")
    return Here(spec.name, spec.variant(), function, arguments)


def _serve(spec: Spec) -> int:
    """Answers the requests of `Apart` with a line each, until there are no more."""
    from hlotag.cli import programs, terminal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # A terminal sends it to `Apart` too, which kills this process.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # What the program prints is no answer.
    said: list[str] = []
    warnings.showwarning = lambda *warning: said.append(warnings.formatwarning(*warning[:4]))

    def answer(**what: Any) -> None:
        print(json.dumps(what | {"warnings": said}), file=answers, flush=True)
        said.clear()

    try:
        with programs.load_in_stage(spec.program) as program:
            subject, trace = load_subject(spec, program), ExitStack()
            for line in sys.stdin:
                what, arguments = json.loads(line)
                if what == "start_trace":
                    answer(value=trace.enter_context(subject.tracing()))
                elif what == "stop_trace":
                    answer(value=trace.close())
                else:
                    answer(value=_do(subject, what, arguments))
    except (HlotagError, OSError) as error:
        answer(error=terminal.in_words(error), is_shown=not isinstance(error, VariantError))
        return 1
    return 0


def _do(subject: Here, what: str, arguments: dict[str, Any]) -> Any:
    from hlotag.reports import audit_json, profile_json

    if what == "prepare":
        found = subject.prepare(Path(arguments["results"]), effects=arguments["effects"])
        return {"audit": audit_json.dumps(found.audit), "results": found.results, "seconds": found.seconds}
    made = getattr(subject, what)(**arguments)
    return profile_json.dumps(made) if what == "profile" else made


if __name__ == "__main__":
    sys.exit(_serve(Spec(**json.loads(sys.argv.pop()))))  # A program finds no arguments that are not its own.
