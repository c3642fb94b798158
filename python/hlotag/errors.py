# SPDX-License-Identifier: Apache-2.0
"""The exceptions and warnings of hlotag."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hlotag._text import printable


class HlotagError(Exception):
    """Base class of all errors that hlotag raises on purpose."""

    def __str__(self) -> str:
        """The message, safe for a terminal: it may quote a module of someone else."""
        return printable(super().__str__(), keep="\n\t")


class IncompatibleJaxlibError(HlotagError):
    """The installed jaxlib cannot run hlotag's passes.

    Raised before any module changes. Either jaxlib's library lacks C functions of MLIR that hlotag calls, or a trial of them in a
    child process failed; the message has the reason.
    """


class ArgumentError(HlotagError, TypeError, ValueError):
    """An argument is invalid: its type, its value, a pipeline, or arrays and devices that do not match a program."""


class TagError(ArgumentError):
    """A tag's key or value, or a rule, is invalid; raised where the tag is written, with the reason."""


class ParseError(HlotagError, ValueError):
    """Text or bytes cannot be parsed as an MLIR or HLO module."""


class TagDroppedWarning(UserWarning):
    """A tag, or a rule for some operations, is not honoured by hlotag or will not be by XLA; the message names its line."""


class KeyIgnoredWarning(UserWarning):
    """No XLA compiler reads a key, which looks like a misspelt key of XLA; the message names that key."""


class PassFailedWarning(UserWarning):
    """A pass failed, and the program continues because of `on_error="warn"`; the message is that of the `PassError`."""


class TagIgnoredWarning(UserWarning):
    """A tag or rule has no effect: hlotag is off, or no operation matches the rule."""


class ScopeError(HlotagError, RuntimeError):
    """An asyncio task traces or lowers while another task of its thread holds a `stage` or `tagged` block open."""


@dataclass(frozen=True)
class Diagnostic:
    """One message of a pass or of MLIR.

    Attributes:
        severity: "error", "warning", "remark" or "note".
        message: The text.
        location: The place as text: `file:line:column`, a name, or empty.
        file: The source file, or empty.
        line: The line in the file, or 0.
        column: The column in the file, or 0.
        notes: Messages attached to this one.
    """

    severity: str
    message: str
    location: str = ""
    file: str = ""
    line: int = 0
    column: int = 0
    notes: tuple[Diagnostic, ...] = ()

    @classmethod
    def of(cls, reported: Any) -> Diagnostic:
        """Copies a diagnostic of a run. The copy can be pickled and compared.

        Args:
            reported: A `hlotag._core.Diagnostic`.

        Returns:
            The copy.
        """
        notes = tuple(cls.of(note) for note in reported.notes)
        return cls(reported.severity, reported.message, reported.location, reported.file, reported.line, reported.column, notes)

    def __str__(self) -> str:
        """The message as `mlir-opt` prints it, its notes below it."""
        place = f"{self.location}: " if self.location else ""
        lines = [f"{place}{self.severity}: {self.message}"]
        lines += [f"  {line}" for note in self.notes for line in str(note).splitlines()]
        return "\n".join(lines)


class PassError(HlotagError):
    """A pass failed. The module is as it was before the pipeline ran.

    Attributes:
        pass_name: The name of the failing pass; empty if unknown (jaxlib's passes).
        diagnostics: The diagnostics of the passes, in order.
        next_step: What to do: for a failure in a JAX program, the command that replays it.
        reproducer: The file with the module before the pipeline; empty if none was written.
    """

    def __init__(
        self, pass_name: str, diagnostics: Sequence[Diagnostic | str] = (), next_step: str = "", reproducer: str = ""
    ) -> None:
        self.pass_name = pass_name
        self.diagnostics = tuple(diagnostics)
        self.reproducer = reproducer
        self.next_step = next_step or (
            "The module was left unchanged. To see it right before the failure, save it to a file and run "
            "`hlotag-opt --mlir-print-ir-after-failure` on it with the same passes."
        )
        # All arguments, so that the error survives pickling (a worker process reports it).
        super().__init__(pass_name, self.diagnostics, self.next_step, reproducer)

    def __str__(self) -> str:
        """The pass, one paragraph per diagnostic, then the next step."""
        lines = [f"pass '{self.pass_name}' failed" if self.pass_name else "a pass of the pipeline failed"]
        for diagnostic in self.diagnostics:
            lines += [f"  {line}" for line in str(diagnostic).splitlines()]
        if not self.diagnostics:
            lines.append("  it gave no reason")
        lines.append(self.next_step)
        return printable("\n".join(lines), keep="\n\t")
