# SPDX-License-Identifier: Apache-2.0
"""How does the program of `--against` run? In a process of its own: two checkouts have modules of the same names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hlotag.cli import terminal
from hlotag.errors import HlotagError

if TYPE_CHECKING:  # They import JAX, which takes a second.
    from hlotag.audits.report import Reported
    from hlotag.profiles.model import Timing


def audit(name: str, flags: Sequence[str]) -> Reported:
    """Audits a program by `hlotag audit` with some flags. Raises HlotagError if that fails; its errors are on stderr."""
    from hlotag.audits.render import as_json

    with tempfile.TemporaryDirectory(prefix="hlotag-") as folder:
        file = Path(folder) / "audit.json"
        command = _python("hlotag", "audit", name, "--no-effects", "--json", str(file), *flags)
        if subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False).returncode:
            raise HlotagError(f"--against {name}: its audit failed, as said above")
        return as_json.loads(file.read_text(encoding="utf-8"), name)


class Turns:
    """A program that another process runs in turns with this one: the methods of `profiles.record.Runner`."""

    def __init__(self, name: str, process: subprocess.Popen[str]) -> None:
        self._name = name
        self._process = process

    def trace(self, steps: int) -> None:
        """Traces some steps, and waits for them."""
        self._ask(f"trace {steps}")

    def profile(self, by: str | Sequence[str] | None) -> Timing:
        """The profile of all traces, without its timeline."""
        from hlotag.profiles import as_json

        return as_json.loads(self._ask(f"profile {json.dumps(by)}"), self._name)

    def wait_until_ready(self) -> None:
        """Waits until the program is compiled and warm."""
        self._ask("")

    def _ask(self, request: str) -> str:
        requests, answers = self._process.stdin, self._process.stdout
        if requests is None or answers is None:
            raise TypeError("the process was started without pipes")
        try:
            print(request, file=requests, flush=True)
            answer = answers.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise HlotagError(
                f"--against {self._name}: its process failed, as said above; on a TPU, which serves one process, use --baseline"
            )
        return answer


@contextmanager
def in_turns(name: str, by: str | Sequence[str] | None) -> Iterator[Turns]:
    """Yields a program that another process has loaded, and compiled. Raises HlotagError if that fails."""
    # Both processes fit on one GPU only if the first one does not take most of its memory.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    command = _python("hlotag.cli.separate", name, json.dumps(by))
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")
    try:
        turns = Turns(name, process)
        turns.wait_until_ready()
        yield turns
    finally:
        process.kill()
        process.communicate()


def _python(*arguments: str) -> list[str]:
    """A command that runs a module in this Python, with the current folder on its path if that is on this one's."""
    safe = [] if {"", os.getcwd()} & set(sys.path) else ["-P"]
    return [sys.executable, *safe, "-m", *arguments]


def _serve(name: str, by: str | Sequence[str] | None) -> int:
    """Answers the requests of `Turns` with a line each, until there are no more."""
    from hlotag.cli import programs
    from hlotag.profiles import as_json
    from hlotag.profiles.record import Runner

    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # What the program prints is no answer.
    with programs.load_to_run(name) as (function, arguments):
        runner = programs.call(name, lambda: Runner(function, arguments, {}, by))
        for request in sys.stdin:
            what, _, argument = request.strip().partition(" ")
            answer = ""
            if what == "trace":
                programs.call(name, lambda steps=int(argument): runner.trace(steps))
            elif what == "profile":
                answer = as_json.dumps(runner.profile(json.loads(argument)))
            print(answer, file=answers, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(terminal.run("hlotag profile", 2, lambda: _serve(sys.argv[1], json.loads(sys.argv[2]))))
