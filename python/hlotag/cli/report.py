# SPDX-License-Identifier: Apache-2.0
"""The command `hlotag report`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

from hlotag._text import printable
from hlotag.cli import terminal
from hlotag.errors import HlotagError

if TYPE_CHECKING:  # They import JAX, which takes a second. Other commands do not need JAX.
    from hlotag.audits.audit import Audit
    from hlotag.profiles.profile import Profile

_EXAMPLES = """\
examples:
  hlotag report train.py:step
  hlotag report train.py:step --by layer -o layers.html
  hlotag report train.py:step --no-run

exit status: 0; 2 if there is nothing to report or a file cannot be written
"""
# Limit of the rows of a table, of 24 lines in all.
_ROWS = 5


def add_to(commands: terminal.Commands) -> None:
    """Adds the command."""
    parser = terminal.add_command(
        commands,
        "report",
        _run,
        failure=2,
        help="write one page: time, communication, memory, rates and tags",
        description="Writes one page for a browser, and prints the answer. Compiles a program, and runs it if it can.",
        epilog=_EXAMPLES,
    )
    add = parser.add_argument
    add(
        "program",
        metavar="PROGRAM",
        help="a program, train.py:step, where step() returns (f, arguments) or jax.jit(f).lower(...)",
    )
    add("-o", "--output", default="report.html", metavar="FILE", help="the page (default: report.html)")
    add(
        "--by",
        type=lambda text: text.split(","),
        metavar="NAMES",
        help="what to group by: keys, source, scope, scope:N or operation, with commas between",
    )
    add("--steps", type=int, default=10, metavar="N", help="how many calls are traced (default: 10)")
    add("--limits", metavar="LIMITS", help="the device's limits, as for hlotag profile")
    add("--no-run", action="store_true", help="compile only: without time")
    add("--no-effects", action="store_true", help="do not compile the program without its tags, to compare effects")


def _run(args: argparse.Namespace) -> int:
    from hlotag.cli import programs

    if not programs.is_named(args.program):
        raise HlotagError(f"{args.program}: expected a program such as train.py:step")
    with programs.load_in_stage(args.program) as program, redirect_stdout(sys.stderr):
        found = programs.call(args.program, lambda: _make(args, *program))
    found.to_html(args.output)
    for line in _answer(found):
        print(printable(line))
    print(printable(f"Page: {args.output}"))
    return 0


def _make(args: argparse.Namespace, function: Any, arguments: Sequence[Any]) -> Audit | Profile:
    from hlotag.audits.collect import audit
    from hlotag.profiles.record import can_run, profile_in_full

    effects = not args.no_effects
    if args.no_run or not can_run(function, arguments):
        return audit(function, *arguments, memory=True, effects=effects)
    return profile_in_full(function, arguments, by=args.by, steps=args.steps, limits=args.limits, effects=effects)


def _answer(found: Audit | Profile) -> Iterator[str]:
    """The answer in 24 lines of 80 columns."""
    import textwrap

    from hlotag.audits.audit import Audit
    from hlotag.results.times import in_words

    audit: Audit | None = found if isinstance(found, Audit) else found.program and found.program.audit
    if not isinstance(found, Audit):
        yield from textwrap.wrap(found.sentence, 80)[:3]
        yield ""
        for each in [each for each in found.break_down() if each.title == found.telling_key]:
            rates = found.rates(each.title)
            yield f"{each.title[:26]:26} {'time':>9} {'share':>6}  of the device's limit"
            for value in list(each.lines)[:_ROWS]:
                seconds = each.sum(value)
                limit = rates[value].of_limit if value in rates else ""
                name = value or f"without {each.title}"
                yield f"{name[:26]:26} {in_words(seconds):>9} {seconds / (found.total_seconds or 1):6.1%}  {limit or ''}".rstrip()
            yield ""
        for transfer in found.transfers[:3]:
            beside = f", {in_words(transfer.independent)} could hide it" if transfer.independent else ""
            exposed = f"{in_words(transfer.exposed):>9} exposed of {in_words(transfer.seconds)}"
            yield f"{transfer.name[:26]:26} {exposed}{beside}"[:80]
        yield from [""] if found.transfers else []
    if audit is not None:
        yield from _of_audit(audit)


def _of_audit(audit: Audit) -> Iterator[str]:
    import textwrap

    from hlotag.reports import memory

    if audit.memory is not None:
        yield from textwrap.wrap(memory.sentence(audit.memory), 80)[:2]
    savings = audit.savings[:1]
    if savings and not savings[0].value:  # The line of all values together does not say which one to begin with.
        savings += [each for each in audit.savings if each.key == savings[0].key and each.value][:1]
    yield from (textwrap.shorten(str(saving), 80, placeholder=" ...") for saving in savings)
    yield from textwrap.wrap(audit.report.sentence, 80)[:2]
    for problem in audit.report.problems[: 4 - max(1, len(savings))]:
        yield f"- {problem.title}{f' at {problem.source}' if problem.source else ''}"[:80]
