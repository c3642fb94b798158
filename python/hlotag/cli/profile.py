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
    from hlotag.profiles.model import Timing
    from hlotag.profiles.views import Profile

_EXAMPLES = """\
examples:
  hlotag profile train.py:step
  hlotag profile train.py:step --by layer,block --html profile.html
  hlotag profile train.py:step --by scope:2
  hlotag profile train.py:step --steps 20 --json profile.json
  hlotag profile train.py:step --steps 20 --baseline profile.json
  hlotag profile new.py:step --against old.py:step
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
    add("--steps", type=int, default=10, metavar="N", help="how many calls are traced (default: 10)")
    add(
        "--by",
        type=lambda text: text.split(","),
        metavar="NAMES",
        help="what to group by: keys, source, scope, scope:N or operation, with commas between",
    )
    add("--memory", action="store_true", help="say what is in memory at the program's peak, too")
    compared = parser.add_mutually_exclusive_group()
    compared.add_argument(
        "--baseline",
        metavar="FILE",
        help="exit with status 1 if something is slower than in this profile, written by --json",
    )
    compared.add_argument(
        "--against",
        metavar="PROGRAM",
        help="run this program too, in a process of its own and in turns; exit with status 1 if something is slower than in it",
    )
    add("--json", metavar="FILE", help="write the profile as JSON; '-' is standard output, instead of the table")
    add("--html", metavar="FILE", help="write the profile as a page for a browser")
    add("--perfetto", metavar="FILE", help="write a timeline with a track for each key, for https://ui.perfetto.dev")


def _run(args: argparse.Namespace) -> int:
    from hlotag.profiles import as_json
    from hlotag.profiles.comparison import changes

    before = as_json.loads(Path(args.baseline).read_text(encoding="utf-8"), args.baseline) if args.baseline else None
    profile, before = _profile_both(args) if args.against else (_profile(args), before)
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
    found = changes(profile, before, in_turns=bool(args.against))
    for change in found:
        print(printable(f"hlotag profile: {'slower' if change.is_slower else 'faster'}: {change}"), file=sys.stderr)
    slower = sum(change.is_slower for change in found)
    print(f"hlotag profile: {count(slower, 'row')} slower than in {args.baseline or args.against}", file=sys.stderr)
    return 1 if slower else 0


def _profile(args: argparse.Namespace) -> Profile:
    from hlotag.cli import programs
    from hlotag.profiles.record import profile, read_profile

    if not programs.is_named(args.program):
        return read_profile(args.program, args.audit, args.by, module=args.module)
    for flag in ("audit", "module"):
        if value := getattr(args, flag):
            raise HlotagError(
                f"--{flag} {value} goes with the folder of a trace; leave it out: {args.program} is audited before it runs"
            )
    with programs.load_to_run(args.program) as (function, arguments), contextlib.redirect_stdout(sys.stderr):
        return programs.call(
            args.program, lambda: profile(function, *arguments, steps=args.steps, by=args.by, memory=args.memory or None)
        )


def _profile_both(args: argparse.Namespace) -> tuple[Profile, Timing]:
    """The profiles of the program and of the one that it is compared with."""
    from hlotag.cli import programs, separate
    from hlotag.profiles.record import Runner, take_turns

    for name in (args.program, args.against):
        if not programs.is_named(name):
            raise HlotagError(
                f"--against runs two programs, and {name} names none: write train.py:step; --baseline compares traces"
            )
    with separate.in_turns(args.against, args.by) as other, programs.load_to_run(args.program) as (function, arguments):

        def run() -> tuple[Profile, Timing]:
            runner = Runner(function, arguments, {}, args.by)
            take_turns([other, runner], args.steps)
            return runner.profile(args.by), other.profile(args.by)

        with contextlib.redirect_stdout(sys.stderr):
            return programs.call(args.program, run)
