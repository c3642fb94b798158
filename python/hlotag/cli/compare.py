# SPDX-License-Identifier: Apache-2.0
"""The command `hlotag compare`."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlotag._text import printable
from hlotag._util.files import write_atomically
from hlotag.cli import terminal
from hlotag.errors import HlotagError

if TYPE_CHECKING:  # A comparison imports JAX, which takes a second. Other commands do not need JAX.
    from hlotag.cli.processes import Spec
    from hlotag.comparisons.comparison import Comparison
    from hlotag.results.compared import Outcome

_EXAMPLES = """\
variants are the programs, each with each choice of rules. The first one is what the others are compared with.

examples:
  hlotag compare train.py:step --rules none --rules groups.toml --rules offload.toml
  hlotag compare old/train.py:step new/train.py:step
  hlotag compare train.py:step --option fast:xla_cpu_enable_fast_math=true
  hlotag compare train.py:step --grid limits.toml --resume limits.json
  hlotag compare old.json new.json

conditions of --fail-if:
  slower             a step, or a row of one, takes longer by more than chance explains
  MEASURE>+P%        time, flops, bytes, exchanged or memory of the program grew by more than P percent: memory>+5%
  results            results differ
  refused            the compiler refused what a tag asks for
  undecided          a change could have gone unnoticed
  not-compiled       a variant was not compiled

exit status: 0; 1 if a condition holds; 2 if there is nothing to compare or a file is invalid
"""
_MEASURE = re.compile(r"(time|flops|bytes|exchanged|memory)>\+?(\d+(?:\.\d+)?)%")
_CONDITIONS = ("slower", "results", "refused", "undecided", "not-compiled")
_NONE = "none"


def add_to(commands: terminal.Commands) -> None:
    """Adds the command."""
    parser = terminal.add_command(
        commands,
        "compare",
        _run,
        failure=2,
        help="say whether tags help: variants compiled, checked and timed",
        description="Says whether tags help. Compiles variants of a program, compares their results, and runs them in turns.",
        epilog=_EXAMPLES,
    )
    add = parser.add_argument
    add(
        "programs",
        nargs="+",
        metavar="PROGRAM",
        help="a program, train.py:step, where step() returns (f, arguments); NAME=train.py:step; or JSON of audits or profiles",
    )
    what = parser.add_argument_group("variants")
    what.add_argument(
        "--rules", action="append", default=[], metavar="FILE", help="a file of rules, or NAME=FILE, or none; may be repeated"
    )
    what.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME:FLAG=VALUE",
        help="compile the variant NAME with an option of XLA's, or add a variant of this name; may be repeated",
    )
    what.add_argument("--grid", metavar="FILE", help="a file of rules in which lists are choices; a variant for each")
    how = parser.add_argument_group("measuring")
    how.add_argument(
        "--by", type=lambda text: text.split(","), metavar="NAMES", help="rows: keys, source, scope, scope:N, operation"
    )
    how.add_argument("--visible", type=_percent, default=0.2, metavar="P%", help="the growth to look for (default: 20%%)")
    how.add_argument("--seconds", type=float, default=60.0, metavar="S", help="limit of the time of rounds (default: 60)")
    how.add_argument("--no-effects", action="store_true", help="do not compile without the tags to see what these changed")
    how.add_argument("--one-process", action="store_true", help="run all variants in one process, as a TPU needs")
    fail = parser.add_argument_group("fail")
    fail.add_argument(
        "--fail-if", action="append", default=[], metavar="CONDITION", help="exit with status 1 if it holds; may be repeated"
    )
    out = parser.add_argument_group("output")
    out.add_argument("--json", metavar="FILE", help="write the comparison as JSON; '-' is standard output, instead of the table")
    out.add_argument("--html", metavar="FILE", help="write the comparison as a page for a browser")
    out.add_argument("--resume", metavar="FILE", help="keep the JSON of what is done in this file, and go on from it")


def _percent(text: str) -> float:
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a growth such as 20%") from None


def _run(args: argparse.Namespace) -> int:
    conditions = [_check_condition(text) for text in args.fail_if]
    with redirect_stdout(sys.stderr):
        found = _compare_saved(args) if all(map(_is_json, args.programs)) else _compare_programs(args)
    if args.json:
        terminal.write_output(args.json, found.to_json(indent=1) + "\n")
    if args.html:
        found.to_html(args.html)
    if args.json != "-":
        terminal.console().print(found)
    held = [(text, outcome) for text in conditions for outcome in found.outcomes if _holds(text, outcome)]
    for text, outcome in held:
        print(printable(f"hlotag compare: --fail-if {text} holds for {outcome.name}: {outcome.verdict}"), file=sys.stderr)
    return 1 if held else 0


def _check_condition(text: str) -> str:
    if text not in _CONDITIONS and not _MEASURE.fullmatch(text):
        raise HlotagError(f"--fail-if {text!r}: expected {', '.join(_CONDITIONS)}, or a measure such as 'memory>+5%'")
    return text


def _holds(text: str, outcome: Outcome) -> bool:
    from hlotag.results.compared import EQUAL, TIME, Trend
    from hlotag.results.tags import Verdict

    if found := _MEASURE.fullmatch(text):
        amount = outcome.program.amount(found[1])
        return amount is not None and amount.trend == Trend.MORE and amount.growth > float(found[2]) / 100
    if text == "slower":
        amounts = [each for row in (outcome.program, *outcome.rows) if (each := row.amount(TIME))]
        return any(each.trend == Trend.MORE for each in amounts)
    if text == "undecided":
        return bool(outcome.undecided()) or outcome.program.has(Trend.UNDECIDED)
    if text == "refused":
        return any(each.verdict == Verdict.REFUSED for each in outcome.effects)
    return bool(outcome.error) if text == "not-compiled" else outcome.results not in ("", EQUAL)


def _is_json(name: str) -> bool:
    return name.endswith(".json")


def _compare_saved(args: argparse.Namespace) -> Comparison:
    """Compares files that `hlotag audit --json` or `hlotag profile --json` wrote."""
    from hlotag.comparisons.run import compare

    saved = {}
    for text in args.programs:
        named, _, file = text.rpartition("=")
        name = named or Path(file).stem
        saved[file if name in saved else name] = _read_saved(file)
    return compare(saved, by=args.by, visible=args.visible)


def _read_saved(file: str) -> Any:
    """Reads the JSON of an audit or a profile. Raises ParseError for anything else."""
    from hlotag.audits.audit import read_audit
    from hlotag.profiles.record import read_profile

    with Path(file).open(encoding="utf-8") as text:
        is_profile = '"hlotag.profile/' in text.read(200)
    return read_profile(file) if is_profile else read_audit(file)


def _compare_programs(args: argparse.Namespace) -> Comparison:
    from hlotag.cli import processes, programs
    from hlotag.comparisons.comparison import Comparison
    from hlotag.comparisons.run import check_numbers, compare_subjects

    check_numbers(args.visible, args.seconds)
    specs = list(_specs(args))
    if len(specs) < 2:
        raise HlotagError("a comparison needs two variants: name another program, --rules, --option or --grid")
    known: dict[str, Outcome] = {}
    if args.resume and Path(args.resume).exists():
        before = Comparison.from_json(Path(args.resume).read_text(encoding="utf-8"), args.resume)
        if before.base.name != specs[0].name:
            raise HlotagError(f"--resume {args.resume}: its first variant is {before.base.name!r}, and now {specs[0].name!r}")
        known = {each.name: each for each in before.outcomes}
    with ExitStack() as stack:
        if args.one_process:
            loaded = {text: stack.enter_context(programs.load_in_stage(text)) for text in dict.fromkeys(s.program for s in specs)}
            subjects = [processes.load_subject(spec, loaded[spec.program]) for spec in specs]
        else:
            shown = set[str]()
            subjects = [processes.Apart(spec, shown) for spec in specs]
        asked = {"by": args.by, "visible": args.visible, "seconds": args.seconds, "effects": not args.no_effects}
        found = None
        for found in compare_subjects(subjects, **asked, known=known):
            if args.resume:
                write_atomically(args.resume, found.to_json(indent=1), private=False)
    if found is None:
        raise TypeError("a comparison of no variants")
    return found


def _specs(args: argparse.Namespace) -> Iterator[Spec]:
    """The variants: each program with each choice of rules, with the options of its name; and those that options name."""
    from hlotag.cli.processes import Spec

    chosen = [*_named_rules(args.rules), *(_grid(args.grid) if args.grid else ())] or [(_NONE, ())]
    if args.grid and not args.rules:
        chosen.insert(0, (_NONE, ()))
    programs = [_named(text) for text in args.programs]
    options = _options(args.option)
    taken = set[str]()
    for name, program in programs:
        for rules_name, rules in chosen:
            is_named_by_rules = len(programs) == 1 and len(chosen) > 1
            variant = rules_name if is_named_by_rules else name if len(chosen) == 1 else f"{name} {rules_name}"
            if variant in taken:
                what = f"--rules new={rules}" if is_named_by_rules and isinstance(rules, str) else f"new={program}"
                raise HlotagError(f"two variants are named {variant!r}; name them, as in {what}")
            taken.add(variant)
            yield Spec(variant, program, rules, options.pop(variant, {}))
    for name, further in options.items():
        yield Spec(name, programs[0][1], chosen[0][1], further)


def _named(text: str) -> tuple[str, str]:
    """The name and the program of `NAME=train.py:step`; the program is its own name."""
    from hlotag.cli import programs

    name, _, program = text.rpartition("=")
    if not programs.is_named(program):
        raise HlotagError(f"{text}: expected a program such as train.py:step, or only files .json of audits or profiles")
    return name or program, program


def _named_rules(texts: Sequence[str]) -> Iterator[tuple[str, str | tuple[()]]]:
    """The name and the path of each file of rules: `groups` of `groups.toml`, `a/groups.toml` if there is another one."""
    stems = Counter(Path(text).stem for text in texts)
    for text in texts:
        name, _, file = text.rpartition("=")
        if text == _NONE:
            yield _NONE, ()
        elif Path(file).is_file():
            stem = Path(file).stem
            yield name or (stem if stems[stem] == 1 else file), str(Path(file).resolve())
        else:
            raise HlotagError(f"--rules {text}: there is no such file")


def _options(texts: Sequence[str]) -> dict[str, dict[str, Any]]:
    """By variant, XLA's options."""
    found: dict[str, dict[str, Any]] = {}
    for text in texts:
        name, colon, setting = text.rpartition(":")
        flag, equals, value = setting.partition("=")
        if not (name and colon and flag and equals):
            raise HlotagError(f"--option {text}: expected NAME:FLAG=VALUE, fast:xla_cpu_enable_fast_math=true")
        found.setdefault(name, {})[flag.removeprefix("--")] = _value(value)
    return found


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _grid(file: str) -> Iterator[tuple[str, Sequence[Mapping[str, Any]]]]:
    """The variants of a file of rules with lists: each name with the fields of its rules."""
    from hlotag.comparisons.variants import choices_of
    from hlotag.passes.rules import read_tables

    yield from choices_of(read_tables(file)).items()
