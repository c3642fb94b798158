# SPDX-License-Identifier: Apache-2.0
"""The command `hlotag profile`."""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hlotag._text import count, printable
from hlotag.cli import terminal
from hlotag.errors import HlotagError

if TYPE_CHECKING:  # A profile imports JAX, which takes a second. Other commands do not need JAX.
    from hlotag.profiles.profile import Profile

_EXAMPLES = """\
examples:
  hlotag profile train.py:step
  hlotag profile train.py:step --by layer,block --html profile.html
  hlotag profile train.py:step --by scope:2
  hlotag profile train.py:step --limits measure
  hlotag profile train.py:step --perfetto timeline.json.gz
  hlotag profile train.py:step --steps 20 --json profile.json
  hlotag profile train.py:step --steps 20 --baseline profile.json
  hlotag profile /tmp/trace --by scope:2
  hlotag profile /tmp/trace --audit audit.json --perfetto timeline.json.gz

exit status: 0; 1 if something is slower than in the other profile; 2 if there is nothing to profile or a file is invalid
"""


def add_to(commands: terminal.Commands) -> None:
    """Adds the command."""
    parser = terminal.add_command(
        commands,
        "profile",
        _run,
        failure=2,
        help="say how much time the operations with each tag take",
        description="Says how much time each tag takes, by phase. Runs a program under JAX's profiler, or reads a trace.",
        epilog=_EXAMPLES,
    )
    add = parser.add_argument
    add(
        "program",
        metavar="PROGRAM",
        help="a program, train.py:step, where step() returns (f, arguments); or the folder or .xplane.pb file of a trace",
    )
    add(
        "--audit",
        metavar="FILE",
        help="the audit of the traced program, which hlotag audit --json wrote; else the trace's module",
    )
    add("--module", metavar="NAME", help="the traced program, jit_step; by default the one with most time")
    add = parser.add_argument_group("report").add_argument
    add("--steps", type=int, default=10, metavar="N", help="how many calls are traced (default: 10)")
    add(
        "--by",
        type=lambda text: text.split(","),
        metavar="NAMES",
        help="what to group by: keys, source, scope, scope:N or operation, with commas between",
    )
    add(
        "--limits",
        metavar="LIMITS",
        help="what the device can do, for shares of it: measure, a kind of device, or a TOML file (default: published figures)",
    )
    add("--memory", action="store_true", help="say what is in memory at the program's peak, too")
    add = parser.add_argument_group("fail").add_argument
    add("--baseline", metavar="FILE", help="exit with status 1 if something is slower than in this profile, written by --json")
    terminal.add_moved(parser, "--against", "PROGRAM", "hlotag compare {0} {program}")
    add = parser.add_argument_group("output").add_argument
    add("--json", metavar="FILE", help="write the profile as JSON; '-' is standard output, instead of the table")
    add("--html", metavar="FILE", help="write the profile as a page for a browser")
    add("--perfetto", metavar="FILE", help="write a timeline with a track for each key, for https://ui.perfetto.dev")


def _run(args: argparse.Namespace) -> int:
    from hlotag.profiles.profile import Profile

    before = Profile.from_json(Path(args.baseline).read_text(encoding="utf-8"), args.baseline) if args.baseline else None
    profile = _profile(args)
    if args.json:
        terminal.write_output(args.json, profile.to_json(indent=1) + "\n")
    if args.html:
        profile.to_html(args.html)
    if args.perfetto:
        profile.to_perfetto(args.perfetto)
    if args.json != "-":
        terminal.console().print(profile)
    if before is None:
        return 0
    return _report_slower(profile, before, args.baseline)


def _report_slower(profile: Profile, before: Profile, baseline: str) -> int:
    """Prints what is slower or faster than in the baseline. Returns the exit status."""
    from hlotag.comparisons.run import VISIBLE
    from hlotag.comparisons.saved import compare_profiles
    from hlotag.results.compared import TIME, Trend

    found = compare_profiles("", profile, before, VISIBLE)
    words = {Trend.MORE: "slower", Trend.LESS: "faster", Trend.UNDECIDED: "undecided"}
    shown = [(row, each) for row in (found.program, *found.rows) if (each := row.amount(TIME)) and each.trend in words]
    for row, each in shown:
        seen = f", {each.doubt}" if each.trend == Trend.UNDECIDED else ""
        print(printable(f"hlotag profile: {words[each.trend]}: {row.name}: {each}{seen}"), file=sys.stderr)
    slower = sum(each.trend == Trend.MORE for _, each in shown)
    print(f"hlotag profile: {count(slower, 'row')} slower than in {baseline}", file=sys.stderr)
    return 1 if slower else 0


def _profile(args: argparse.Namespace) -> Profile:
    from hlotag.cli import programs
    from hlotag.profiles.record import profile, read_profile

    if not programs.is_named(args.program):
        return read_profile(args.program, args.audit, args.by, module=args.module, limits=args.limits)
    for flag in ("audit", "module"):
        if value := getattr(args, flag):
            raise HlotagError(
                f"--{flag} {value} goes with the folder of a trace; leave it out: {args.program} is audited before it runs"
            )
    with programs.load_to_run(args.program) as (function, arguments), contextlib.redirect_stdout(sys.stderr):
        return programs.call(
            args.program,
            lambda: profile(function, *arguments, steps=args.steps, by=args.by, memory=args.memory, limits=args.limits),
        )
