# SPDX-License-Identifier: Apache-2.0
"""The command `hlotag audit`."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hlotag._text import count
from hlotag._util.progress import step
from hlotag.cli import terminal
from hlotag.errors import HlotagError

if TYPE_CHECKING:  # An audit imports JAX, which takes a second. Other commands do not need JAX.
    from hlotag.audits.audit import Audit
    from hlotag.cli.condition import Condition
    from hlotag.results.report import Problem

_GRAMMAR = """\
conditions of --fail-if:
  STATES[:KEY[=VALUE]]    STATES is one state or several with commas between, or "attention": lost, and no
                          entry that a library wrote for one operation. KEY and VALUE may hold * and ?.
                          Without KEY, any tag counts.
  dropped[:KEY[=VALUE]]   a tag on a value that no operation made
  effect[:KEY[=VALUE]]    the compiler refused what the key asks for
  no-difference[:KEY[=VALUE]]
                          the compiler does the same without the tag
  absent:KEY[=VALUE]      no operation has such a tag
  states: kept, restored, consumed, lost, eliminated, unknown

examples:
  hlotag audit train.py:step --fail-if lost:_scheduling_group_id --json audit.json
  hlotag audit train.py:step --baseline audit.json --sarif audit.sarif
  hlotag audit module.mlir --html audit.html
  hlotag audit train.py:step --tags
  hlotag audit train.py:step --memory scope:2
  hlotag audit train.py:step --work layer
  hlotag audit train.py:step --instructions 'scope=mlp,phase=backward'
  hlotag audit module.mlir --pass-pipeline='hlotag-propagate-autodiff,hlotag-finalize' --xla-passes
  hlotag audit --dump-dir dumps --fail-if lost:_scheduling_group_id --fail-if 'attention:block=att*'
  hlotag audit module.mlir --json - | jq '.tags[].state'

exit status: 0; 1 if a condition holds or a problem is worse than in the baseline; 2 if there is nothing to audit or a file
is invalid
"""

# Limit of lines printed for a condition that holds.
_LISTED = 20
_HLO = (".hlo.pb", ".hlo", ".txt")
_SAVED = ".json"


def add_to(commands: terminal.Commands) -> None:
    """Adds the command."""
    parser = terminal.add_command(
        commands,
        "audit",
        _run,
        failure=2,
        help="say what became of every tag of a module",
        description="Says what became of every tag. Compiles a module or program; only reads a folder of XLA's dumps.",
        epilog=_GRAMMAR,
    )
    add, source = parser.add_argument, parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="a StableHLO module, text, bytecode or an export, '-' for standard input; a program, train.py:step, where "
        "step() returns jax.jit(f).lower(...) or (f, arguments); optimized HLO, a file .hlo.pb, .hlo or .txt; or a saved audit, "
        ".json",
    )
    source.add_argument("--dump-dir", metavar="DIR", help="the folder of --xla_dump_to=DIR")
    add("--module", metavar="NAME", help="for --dump-dir: part of the module's name (default: the largest module)")
    add(
        "--pass-pipeline",
        metavar="TEXT",
        default="",
        help="passes to run on the module first (default: none), or on a program (default: those of hlotag.enable())",
    )
    add(
        "--shape",
        action="append",
        default=[],
        type=_size,
        metavar="NAME=SIZE",
        help="the size of a symbolic dimension of an export, b=8; may be repeated",
    )
    add = parser.add_argument_group("report").add_argument
    add("--tags", action="store_true", help="list every tag: state, phase, operation, line, instruction; with --xla-passes, why")
    add(
        "--instructions",
        nargs="?",
        const="",
        metavar="WHERE",
        help="list every instruction: what it computes, source, scope, tags and work; WHERE is layer=1,scope=mlp,phase=backward, "
        "or the name of a fusion",
    )
    add("--order", default="work", choices=("work", "program", "schedule"), help="the order of --instructions (default: work)")
    add("--untagged", action="store_true", help="list the source lines whose operations have no tag, those with most work first")
    add(
        "--memory",
        nargs="?",
        const="",
        metavar="NAMES",
        help="say what is in memory at the peak, by keys (default: each), source, scope, scope:N or operation",
    )
    add("--work", nargs="?", const="", metavar="NAMES", help="say how much is computed, written and exchanged, by such names")
    terminal.add_moved(parser, "--against", "PROGRAM", "hlotag compare {0} {program}")
    _add_outputs(parser)


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    """Adds the flags for the compilation, conditions and files."""
    add = parser.add_argument_group("compile").add_argument
    add("--no-effects", action="store_true", help="do not compile the program without its tags, to compare effects")
    add("--no-hlo", action="store_true", help="compile as JAX alone does, without the HLO pass of hlotag.enable()")
    add("--xla-passes", action="store_true", help="name the XLA pass behind the state of every tag")
    add = parser.add_argument_group("fail").add_argument
    add("--fail-if", action="append", default=[], metavar="CONDITION", help="exit with status 1 if it holds; may be repeated")
    add("--baseline", metavar="FILE", help="exit with status 1 if a problem is worse than in this audit, written by --json")
    add = parser.add_argument_group("output").add_argument
    add("--json", metavar="FILE", help="write the audit as JSON; '-' is standard output, instead of the table")
    add("--html", metavar="FILE", help="write the report as a page for a browser")
    add("--sarif", metavar="FILE", help="write the problems, or the worse ones, as SARIF, which code hosts show at source lines")
    add("--sources", nargs="?", const=".", metavar="DIR", help="quote lines of files below DIR (default: here) in the page")


def _size(text: str) -> tuple[str, int]:
    """Reads `b=8`."""
    name, _, size = text.partition("=")
    if not (name.isidentifier() and size.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r}: expected the name and size of a dimension, such as b=8")
    return name, int(size)


def _run(args: argparse.Namespace) -> int:
    from hlotag.audits import baseline
    from hlotag.audits.audit import read_audit
    from hlotag.cli.condition import Condition
    from hlotag.reports import audit_table

    conditions = [Condition.parse(text) for text in args.fail_if]
    if args.json == args.sarif == "-":
        raise HlotagError("--json and --sarif cannot both be standard output; give one of them a file")
    if args.sources and not Path(args.sources).is_dir():
        raise HlotagError(f"--sources {args.sources}: there is no such folder")
    before = read_audit(args.baseline) if args.baseline else None
    with step(f"auditing {args.dump_dir or args.file}"):
        audit = _audit(args)
        audit = dataclasses.replace(audit, source_root=args.sources or audit.source_root)
    worse = None if before is None else baseline.worse(audit, before)
    _write_outputs(args, audit, worse)
    if "-" not in (args.json, args.sarif):
        _print(args, audit)
    status = _report(audit, conditions)
    if worse:
        status = 1
        print(f"hlotag audit: worse than {args.baseline}: {count(len(worse), 'problem')}", file=sys.stderr)
        terminal.console(stderr=True).print(*audit_table.problems(worse), sep="\n")
    return status


def _print(args: argparse.Namespace, audit: Audit) -> None:
    """Prints the report, and what the flags ask for."""
    from hlotag.reports import audit_table, memory, work
    from hlotag.results.listing import list_instructions

    console = terminal.console()
    console.print(audit)
    if args.tags:
        console.print(audit_table.tags_table(audit))
    if args.untagged:
        console.print(audit_table.make_untagged_table(audit))
    if args.instructions is not None:
        console.print(audit_table.listing_table(list_instructions(audit, args.instructions, args.order)))
    if args.work is not None:
        console.print(work.renderable(audit, _groups(audit, args.work)))
    if args.memory is not None:
        console.print(memory.renderable(audit, _groups(audit, args.memory), console.width))


def _names(text: str) -> list[str] | None:
    """The names of one grouping; None for the default."""
    return text.split(",") if text else None


def _groups(audit: Audit, text: str) -> Sequence[str | list[str]]:
    names = _names(text)
    return [names] if names else audit.keys or ["scope"]


def _write_outputs(args: argparse.Namespace, audit: Audit, worse: Sequence[Problem] | None) -> None:
    """Writes the files that the flags name; `worse` are the problems that the baseline does not have."""
    from hlotag._util.files import write_atomically
    from hlotag.cli import programs
    from hlotag.reports import audit_page, sarif

    audited = Path(args.dump_dir or programs.file_of(args.file))
    problems = audit.report.problems if worse is None else worse
    outputs: dict[str, Callable[[str], None]] = {
        "html": lambda path: write_atomically(path, audit_page.html(audit, worse or ()), private=False),
        "json": lambda path: terminal.write_output(path, audit.to_json(indent=1) + "\n"),
        "sarif": lambda path: terminal.write_output(path, sarif.dumps(problems, Path.cwd(), audited) + "\n"),
    }
    for name, write in outputs.items():
        if (path := getattr(args, name)) is not None:
            with step(f"writing {path}"):
                write(path)


def _audit(args: argparse.Namespace) -> Audit:
    from hlotag.cli import programs

    if args.module is not None and args.dump_dir is None:
        raise HlotagError("--module chooses from a folder: give --dump-dir")
    if args.file and Path(args.file).is_dir():
        raise HlotagError(f"{args.file}: a folder; write --dump-dir {args.file} for a folder of XLA's dumps")
    is_read = args.dump_dir is not None or args.file.endswith((*_HLO, _SAVED))
    is_module = not is_read and not programs.is_named(args.file)
    if args.shape and not is_module:
        raise HlotagError(f"--shape is for the file of an export; {args.dump_dir or args.file} has its shapes")
    if is_read:
        return _read_audit(args)

    if programs.is_named(args.file):
        return _audit_program(args)
    from hlotag.audits.collect import audit_module

    source = sys.stdin.buffer.read() if args.file == "-" else Path(args.file).read_bytes()
    name = terminal.STDIN if args.file == "-" else args.file
    return audit_module(
        *(source, name, args.pass_pipeline),
        xla_passes=args.xla_passes,
        sizes=dict(args.shape),
        hlo=not args.no_hlo,
        compare=not args.no_effects,
        memory=_needs_memory(args),
    )


def _read_audit(args: argparse.Namespace) -> Audit:
    """Audits a folder of dumps or a file of HLO, or reads a saved audit. Raises HlotagError for a flag of a compilation."""
    from hlotag.audits.audit import read_audit
    from hlotag.audits.dumps import audit_dumps

    is_saved = args.dump_dir is None and args.file.endswith(_SAVED)
    name = f"--dump-dir {args.dump_dir}" if args.dump_dir is not None else args.file
    compiling = {"--pass-pipeline": args.pass_pipeline, "--xla-passes": args.xla_passes, "--no-hlo": args.no_hlo}
    if given := [flag for flag, value in compiling.items() if value]:
        what = "a saved audit" if is_saved else "HLO"
        raise HlotagError(f"{', '.join(given)}: only for what is compiled here; {name} is {what}, which is only read")
    if is_saved:
        found = read_audit(args.file)
    else:
        found = audit_dumps(Path(args.dump_dir or args.file), args.module, memory=_needs_memory(args))
    if args.memory is not None and found.memory is None:
        raise HlotagError(f"--memory: {'the audit was saved without it' if is_saved else found.notes[-1]}")
    return found


def _audit_program(args: argparse.Namespace) -> Audit:
    """Audits the program that the arguments name."""
    from hlotag.audits.collect import audit
    from hlotag.cli import programs

    options = {"xla_passes": args.xla_passes, "effects": not args.no_effects, "memory": _needs_memory(args)}
    with programs.load_in_stage(args.file, args.pass_pipeline, hlo=not args.no_hlo) as (function, arguments):
        return programs.call(args.file, lambda: audit(function, *arguments, **options))


def _needs_memory(args: argparse.Namespace) -> bool:
    return args.memory is not None


def _report(audit: Audit, conditions: Sequence[Condition]) -> int:
    status = 0
    for condition in conditions:
        lines = condition.violations(audit)
        if lines:
            status = 1
            print(f"hlotag audit: --fail-if {condition.text} holds:", file=sys.stderr)
            rows = [f"{times} x {line}" if times > 1 else line for line, times in Counter(lines).most_common()]
            print("".join(f"  {row}\n" for row in rows[:_LISTED]), end="", file=sys.stderr)
            if len(rows) > _LISTED:
                print(f"  and {len(rows) - _LISTED} more lines", file=sys.stderr)
    return status
