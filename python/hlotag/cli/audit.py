# SPDX-License-Identifier: Apache-2.0
"""The command `hlotag audit`."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from rich.console import Console

from hlotag._util.progress import step
from hlotag._util.text import printable
from hlotag.audit.model import WHERE_IT_WENT, Tag, TagState
from hlotag.audit.render import model_explorer
from hlotag.audit.render.table import plain_rows
from hlotag.audit.views import Audit
from hlotag.cli import terminal
from hlotag.errors import HlotagError

_GRAMMAR = """\
conditions of --fail-if:
  STATES[:KEY[=VALUE]]    STATES is one state or several with commas between, or "attention" for lost,moved.
                          KEY and VALUE may hold * and ?. Without KEY, any tag counts.
  dropped[:KEY[=VALUE]]   a tag that no operation could take, or that is on a wrong instruction
  effect[:KEY[=VALUE]]    the compiler reads the key and did not do what it asks for
  states: {states}

examples:
  hlotag audit module.mlir --html audit.html
  hlotag audit module.mlir --pass-pipeline='hlotag-propagate-autodiff,hlotag-verify' --xla-passes
  hlotag audit --dump-dir dumps --fail-if lost:_scheduling_group_id --fail-if 'attention:block=att*'
  hlotag audit module.mlir --json - | jq '.tags[].state'

exit status: 0; 1 if a condition holds; 2 if there is nothing to audit or a file is not what it should be
"""

# How many lines say what made a condition hold.
_LISTED = 20


class ConditionError(HlotagError):
    """A condition of `--fail-if` is malformed."""


@dataclass(frozen=True)
class Condition:
    """What makes `hlotag audit` fail.

    Attributes:
        text: As it was written.
        states: Which states count.
        strays: Whether tags on wrong instructions, and those without operation, count.
        effects: Whether keys count that the compiler reads and did not obey.
        key: A pattern.
        value: A pattern.
    """

    text: str
    states: frozenset[TagState]
    strays: bool = False
    effects: bool = False
    key: str = "*"
    value: str = "*"

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Reads a condition.

        Args:
            text: `lost:_scheduling_group_id`.

        Returns:
            The condition.

        Raises:
            ConditionError: It is malformed; the message says what there is.
        """
        states, colon, tag = text.partition(":")
        key, equals, value = tag.partition("=")
        if not states or (colon and not key) or (equals and not value):
            raise ConditionError(f"--fail-if {text!r}: expected STATES[:KEY[=VALUE]], for example lost:_scheduling_group_id")
        named = [name.strip() for name in states.split(",")]
        known = {str(state): {state} for state in TagState}
        known |= {"attention": {TagState.LOST, TagState.MOVED}, "dropped": set(), "effect": set()}
        unknown = [name for name in named if name not in known]
        if unknown:
            raise ConditionError(f"--fail-if {text!r}: no such state: {', '.join(unknown)}; there are: {', '.join(known)}")
        found = frozenset(state for name in named for state in known[name])
        return cls(text, found, "dropped" in named, "effect" in named, key or "*", value or "*")

    def violations(self, audit: Audit) -> list[str]:
        """What of an audit the condition is about.

        Args:
            audit: Any.

        Returns:
            A line for each.
        """
        lines = plain_rows([tag for tag in audit.tags if self._counts(tag)])
        if self.strays:
            strays = [stray for stray in audit.strays if self._matches(stray.key, stray.value)]
            lines += [printable(f"{s.key}={s.value} on {s.opcode} {s.instruction}") for s in strays]
            for dropped in audit.dropped:
                lines += [
                    printable(f"{key}={value} at {dropped.file}:{dropped.line}")
                    for key, value in dropped.attrs
                    if self._matches(key, value)
                ]
        if self.effects:
            disobeyed = [effect for effect in audit.effects if effect.obeyed is False]
            lines += [printable(str(effect)) for effect in disobeyed if self._matches(effect.key, effect.value)]
        return lines

    def _counts(self, tag: Tag) -> bool:
        # How a tag came is a condition as well: none is to be inferred, for instance.
        return (tag.state in self.states or tag.origin in self.states) and self._matches(tag.key, tag.value)

    def _matches(self, key: str, value: str) -> bool:
        return fnmatchcase(key, self.key) and fnmatchcase(value, self.value)


def main(argv: Sequence[str]) -> int:
    """Runs `hlotag audit`.

    Args:
        argv: The arguments after `audit`.

    Returns:
        The exit status.
    """
    args = parser().parse_args(argv)
    return terminal.run("hlotag audit", 2, lambda: _run(args))


def _run(args: argparse.Namespace) -> int:
    conditions = [Condition.parse(text) for text in args.fail_if]
    if args.explore:
        model_explorer.installed()  # Before anything that takes long.
    with step(f"auditing {args.dump_dir or args.file}"):
        audit = dataclasses.replace(_audit(args), source_root=args.sources)
    outputs: dict[str, Callable[[str], None]] = {
        "html": audit.to_html,
        "png": audit.to_png,
        "json": lambda path: terminal.write_output(path, audit.to_json(indent=1) + "\n"),
    }
    for name, write in outputs.items():
        if (path := getattr(args, name)) is not None:
            with step(f"writing {path}"):
                write(path)
    if args.json != "-":
        Console().print(audit)
    status = _report(audit, conditions)
    if args.explore:
        model_explorer.explore(audit)
    return status


def parser() -> argparse.ArgumentParser:
    """The parser of `hlotag audit`.

    Returns:
        A new one.
    """
    parser = argparse.ArgumentParser(
        prog="hlotag audit",
        description="Says where every tag of a program went: a module is compiled for it, a folder of XLA's dumps only read.",
        epilog=_GRAMMAR.format(states=", ".join(map(str, WHERE_IT_WENT))),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("file", nargs="?", metavar="FILE", help="a StableHLO module, text or bytecode; '-' is standard input")
    add("--dump-dir", metavar="DIR", help="what XLA_FLAGS=--xla_dump_to named")
    add("--module", metavar="NAME", help="of a folder: part of the module's name (default: the largest one)")
    add("--pass-pipeline", metavar="TEXT", default="", help="passes to run on the module first (default: none)")
    add("--no-hlo", action="store_true", help="compile as JAX alone does, without the HLO stage of hlotag.enable()")
    add("--xla-passes", action="store_true", help="find out which of XLA's passes changed what")
    add("--fail-if", action="append", default=[], metavar="CONDITION", help="exit with status 1 if it holds; may be repeated")
    add("--json", metavar="FILE", help="write the audit as JSON; '-' is standard output, instead of the table")
    add("--html", metavar="FILE", help="write a page to look at")
    add("--sources", nargs="?", const=".", metavar="DIR", help="quote lines of files below DIR (default: here) in the page")
    add("--explore", action="store_true", help="open the graph in Model Explorer, which hlotag[explore] installs")
    add("--png", metavar="FILE", help="write a figure: .png, .svg or .pdf")
    return parser


def _audit(args: argparse.Namespace) -> Audit:
    if (args.file is None) == (args.dump_dir is None):
        raise HlotagError("give either a module or --dump-dir")
    if args.dump_dir is not None and (args.pass_pipeline or args.xla_passes or args.no_hlo):
        raise HlotagError(
            "--pass-pipeline, --xla-passes and --no-hlo are for a module, and not for --dump-dir: dumps are only read"
        )
    if args.module is not None and args.dump_dir is None:
        raise HlotagError("--module chooses from a folder: give --dump-dir")
    if args.dump_dir is not None:
        from hlotag.audit.dumps import audit_dumps

        return audit_dumps(Path(args.dump_dir), args.module)
    from hlotag.audit.collect import audit_module

    source = sys.stdin.buffer.read() if args.file == "-" else Path(args.file).read_bytes()
    return audit_module(source, args.file, args.pass_pipeline, xla_passes=args.xla_passes, hlo=not args.no_hlo)


def _report(audit: Audit, conditions: Sequence[Condition]) -> int:
    status = 0
    for condition in conditions:
        lines = condition.violations(audit)
        if lines:
            status = 1
            print(f"hlotag audit: --fail-if {condition.text}: {len(lines)} tags", file=sys.stderr)
            rows = [f"{count} x {line}" if count > 1 else line for line, count in Counter(lines).most_common()]
            print("".join(f"  {row}\n" for row in rows[:_LISTED]), end="", file=sys.stderr)
            if len(rows) > _LISTED:
                print(f"  and {len(rows) - _LISTED} more lines", file=sys.stderr)
    return status
