# SPDX-License-Identifier: Apache-2.0
"""The command line: `hlotag` with its commands, and `hlotag-opt`."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hlotag._util.deep import with_room
from hlotag._util.progress import step
from hlotag.cli import completion, terminal
from hlotag.cli.expectations import Report, compare, find_expectations
from hlotag.errors import ArgumentError, Diagnostic, ParseError
from hlotag.host import connection
from hlotag.host.modules import explain, nesting_depth, new_context, parse_module, to_bytecode, try_parse
from hlotag.passes.pipeline import list_passes, pipeline_text, run_and_report
from hlotag.passes.plugins import load_pass_plugin

_SPLIT_MARKER = re.compile(r"^// -----[^\n]*(?:\n|\Z)", re.MULTILINE)
_PASS_FLAG = re.compile(r"--?(?P<name>[A-Za-z][\w.-]*)(?:=(?P<options>.*))?", re.DOTALL)


_SUMMARIES = {
    "opt": "run passes on a module, with mlir-opt's flags (also: hlotag-opt)",
    "passes": "describe the passes",
    "audit": "say where every tag of a module went",
    "keys": "list the keys that XLA knows, with their legal values",
    "completion": "print what a shell needs to complete these commands",
}
_EXAMPLES = """\
examples:
  hlotag opt module.mlir --hlotag-propagate-calls
  hlotag audit module.mlir --fail-if lost:_scheduling_group_id
  hlotag passes hlotag-strip
  hlotag keys '_xla_*'
  eval "$(hlotag completion bash)"
"""
_OPT_EXAMPLES = """\
examples:
  hlotag-opt module.mlir --hlotag-propagate-calls --cse -o tagged.mlir
  hlotag-opt module.mlir --pass-pipeline='hlotag-strip{keys=debug*},canonicalize'
  hlotag-opt module.mlir --hlotag-resolve --mlir-print-ir-after-change -o /dev/null
"""
_PASSES_EXAMPLES = """\
examples:
  hlotag passes
  hlotag passes hlotag-strip hlotag-attach
"""
_COMPLETION_EXAMPLES = """\
examples:
  eval "$(hlotag completion bash)"          # for this shell
  hlotag completion bash > ~/.local/share/bash-completion/completions/hlotag
  hlotag completion zsh --program hlotag-opt > ~/.zfunc/_hlotag-opt
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `hlotag`.

    Args:
        argv: The arguments without the program's name; those of the process by default.

    Returns:
        The exit status.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    commands: dict[str, Callable[[Sequence[str]], int]] = {
        "opt": opt_main,
        "passes": _passes_main,
        "keys": _keys_main,
        "audit": _audit_main,
        "completion": _completion_main,
    }
    # A command's own parser, so that what one needs is not imported for the other.
    if arguments and arguments[0] in commands:
        return commands[arguments[0]](arguments[1:])
    parser = _parser()
    if not arguments:
        parser.print_help(sys.stderr)
        return 2
    if parser.parse_args(arguments).version:
        print(f"hlotag {version('hlotag')}")
    return 0


def opt_main(argv: Sequence[str] | None = None) -> int:
    """Runs `hlotag-opt`: reads a module, runs passes on it, writes it; with the flags of `mlir-opt`.

    Args:
        argv: The arguments without the program's name; those of the process by default.

    Returns:
        The exit status: 0, or 1 if something was wrong, which is then told on stderr.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = _opt_parser(with_passes=any(argument in ("-h", "--help") for argument in arguments))
    args, rest = parser.parse_known_args(arguments)
    if args.version:
        print(f"hlotag {version('hlotag')}")
        return 0

    def run() -> int:
        for plugin in args.load_pass_plugin:
            load_pass_plugin(plugin)
        pipeline = _pipeline_of(args.pass_pipeline, rest, list(parser._option_string_actions))
        connection.ensure()
        return _Opt(args, pipeline).run()

    return terminal.run("hlotag-opt", 1, run)


def _parser() -> argparse.ArgumentParser:
    """The parser of all commands, for help and completions."""
    parser = argparse.ArgumentParser(
        prog="hlotag",
        description="Tags on the operations of a JAX program.",
        epilog=_EXAMPLES + "\nhlotag COMMAND --help has the flags of a command, with examples.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print hlotag's version")
    commands = parser.add_subparsers(metavar="COMMAND", dest="command")
    for name, summary in _SUMMARIES.items():
        own = _parser_of(name)
        commands.add_parser(name, parents=[own], add_help=False, help=summary, description=own.description)
    return parser


def _parser_of(command: str) -> argparse.ArgumentParser:
    from hlotag.cli import audit, key_table

    makers: dict[str, Callable[[], argparse.ArgumentParser]] = {
        "opt": lambda: _opt_parser(with_passes=False, pass_flags=True),
        "passes": _passes_parser,
        "audit": audit.parser,
        "keys": key_table.parser,
        "completion": _completion_parser,
    }
    return makers[command]()


def _passes_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hlotag passes",
        description="Describes hlotag's passes.",
        epilog=_PASSES_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="*", metavar="PASS", help="only these")
    return parser


def _passes_main(argv: Sequence[str]) -> int:
    names = _passes_parser().parse_args(argv).name
    return terminal.run("hlotag passes", 1, lambda: _describe(names))


def _describe(names: Sequence[str]) -> int:
    known = {info.name: info for info in list_passes()}
    unknown = [name for name in names if name not in known]
    if unknown:
        ours_first = sorted(known, key=lambda name: (not name.startswith("hlotag-"), name))
        raise ArgumentError(f"no such pass: {', '.join(unknown)}; there are: {', '.join(ours_first)}")
    for name in names or known:
        info = known[name]
        print(f"{info.name}: {info.summary}\n\n{textwrap.indent(info.description, '  ')}\n")
        for option in info.options:
            print(f"  {option.name} ({option.type}, default {option.default}): {option.description}")
        print()
    return 0


def _keys_main(argv: Sequence[str]) -> int:
    from hlotag.cli import key_table

    return key_table.main(argv)


def _audit_main(argv: Sequence[str]) -> int:
    from hlotag.cli import audit

    return audit.main(argv)


def _completion_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hlotag completion",
        description="Prints what a shell needs to complete these commands: their flags, passes, keys and files.",
        epilog=_COMPLETION_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=completion.SHELLS)
    parser.add_argument("--program", choices=("hlotag", "hlotag-opt"), default="hlotag", help="which (default: hlotag)")
    return parser


def _completion_main(argv: Sequence[str]) -> int:
    args = _completion_parser().parse_args(argv)
    of = _parser if args.program == "hlotag" else lambda: _parser_of("opt")

    def run() -> int:
        print(completion.script(args.shell, of()))
        return 0

    return terminal.run("hlotag completion", 1, run)


def _flag(text: str) -> bool:
    if text.lower() in ("1", "true"):
        return True
    if text.lower() in ("0", "false"):
        return False
    raise argparse.ArgumentTypeError(f"expected true or false, not {text!r}")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _opt_parser(*, with_passes: bool, pass_flags: bool = False) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hlotag-opt",
        usage="hlotag-opt [options] [--PASS[=OPTIONS] ...] [file]",
        description="Runs MLIR passes, hlotag's and jaxlib's, on a module as JAX makes them.",
        epilog=_OPT_EXAMPLES + ("\n" + _describe_passes() if with_passes else ""),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("file", nargs="?", default="-", metavar="FILE", help="text or bytecode; '-' is standard input")
    add("-o", dest="output", default="-", metavar="FILE", help="where to write the result")
    add("--pass-pipeline", metavar="TEXT", help="for example 'builtin.module(hlotag-strip{keys=a,b},cse)'")
    add("--load-pass-plugin", action="append", default=[], metavar="FILE", help="a library with passes, or its entry point")
    add("--split-input-file", action="store_true", help="split at lines '// -----' and process each part on its own")
    add("--verify-diagnostics", action="store_true", help="check diagnostics against the expected-... comments")
    add("--verify-each", nargs="?", type=_flag, const=True, default=True, metavar="BOOL", help="verify after passes")
    add("--verify-roundtrip", action="store_true", help="check that the result survives printing and parsing")
    add("--allow-unregistered-dialect", action="store_true", help="accept operations of unknown dialects")
    add("--emit-bytecode", action="store_true", help="write bytecode")
    for when in ("before", "after"):
        add(f"--mlir-print-ir-{when}", type=_names, action="extend", default=[], metavar="PASSES")
        add(f"--mlir-print-ir-{when}-all", action="store_true")
    add("--mlir-print-ir-after-change", action="store_true")
    add("--mlir-print-ir-after-failure", action="store_true")
    add("--mlir-print-ir-module-scope", action="store_true")
    add("--mlir-print-debuginfo", action="store_true", help="print locations")
    add("--mlir-print-local-scope", action="store_true", help="print locations and attributes in place, without aliases")
    add("--mlir-print-op-generic", action="store_true")
    add("--mlir-timing", action="store_true")
    add("--debug-origins", action="store_true", help="record in hlotag.origins where the entries come from that passes add")
    add("--mlir-disable-threading", action="store_true", help="accepted for compatibility; one thread is used anyway")
    add("--version", action="store_true", help="print hlotag's version")
    for info in list_passes() if pass_flags else ():
        add(f"--{info.name}", metavar="OPTIONS", help=info.summary.replace("%", "%%"))
    return parser


def _describe_passes() -> str:
    lines = ["passes (and those that jaxlib registers, such as --canonicalize and --cse):"]
    for info in list_passes():
        lines.append(f"  --{info.name:<30} {info.summary}")
        lines += [f"      {o.name}=<{o.type}>: {o.description} (default: {o.default})" for o in info.options]
    return "\n".join(lines)


def _pipeline_of(text: str | None, flags: Sequence[str], options: Sequence[str]) -> str:
    """One pipeline from `--pass-pipeline` or from a flag for each pass, in the order given; `options` are the other flags."""
    elements = []
    for flag in flags:
        match = _PASS_FLAG.fullmatch(flag)
        if match is None:
            raise ArgumentError(f"unexpected argument {flag!r}; one file and flags are expected")
        if meant := difflib.get_close_matches(f"--{match['name']}", options, n=1, cutoff=0.85):
            raise ArgumentError(f"no such flag or pass: --{match['name']}; did you mean {meant[0]}?")
        elements.append(f"{match['name']}{{{match['options']}}}" if match["options"] else match["name"])
    if text is not None and elements:
        raise ArgumentError("use either --pass-pipeline or a flag for each pass, not both")
    return pipeline_text(text if text is not None else elements)


@dataclass
class _Part:
    """A part of the input that is processed on its own.

    Attributes:
        source: Its text, with empty lines in front so that line numbers are those of the file; or bytecode.
        reports: What was reported about it.
        output: The result, None if there is none.
    """

    source: str | bytes
    reports: list[Report] = field(default_factory=list)
    output: str | bytes | None = None


class _Opt:
    """One run of `hlotag-opt`."""

    def __init__(self, args: argparse.Namespace, pipeline: str) -> None:
        self.args = args
        self.pipeline = pipeline
        self.filename = "<stdin>" if args.file == "-" else args.file
        self.failed = False
        self._check_names()

    def run(self) -> int:
        parts = [_Part(source) for source in self._read()]
        for part in parts:
            self._process(part)
            if self.args.verify_diagnostics:
                self._check_reports(part)
        if self.args.verify_diagnostics or not self.failed or len(parts) > 1:
            self._write([part.output for part in parts if part.output is not None])
        return 1 if self.failed else 0

    def _check_names(self) -> None:
        known = {info.name for info in list_passes()} | {"all"}
        for name in [*self.args.mlir_print_ir_before, *self.args.mlir_print_ir_after]:
            if name not in known and not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", self.pipeline):
                raise ArgumentError(f"--mlir-print-ir-...={name}: no such pass is in the pipeline {self.pipeline!r}")

    def _read(self) -> Iterator[str | bytes]:
        with step(f"reading {self.filename}"):
            raw = sys.stdin.buffer.read() if self.args.file == "-" else Path(self.args.file).read_bytes()
        if raw.startswith(b"ML\xefR"):
            yield raw
            return
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            raise ParseError(f"{self.filename}: neither bytecode nor UTF-8 text: {error}") from None
        if not self.args.split_input_file:
            yield text
            return
        start = 0
        for marker in [*_SPLIT_MARKER.finditer(text), None]:
            end = marker.start() if marker else len(text)
            yield "\n" * text.count("\n", 0, start) + text[start:end]
            start = marker.end() if marker else end

    def _process(self, part: _Part) -> None:
        with new_context(allow_unregistered_dialects=self.args.allow_unregistered_dialect):
            with step(f"parsing {self.filename}", len(part.source)):
                module, problems = try_parse(part.source)
            if module is None:
                self._fail(part, problems)
                return
            with self._running():
                result = run_and_report(module, self.pipeline, **self._run_options())
            diagnostics = [Diagnostic.of(diagnostic) for diagnostic in result.diagnostics]
            if not result.ok:
                self._fail(part, diagnostics)
                return
            self._report(part, diagnostics)
            depth = nesting_depth(part.source)
            with step("writing the result", len(part.source)):
                part.output = with_room(depth, lambda: self._print(module))
            if self.args.verify_roundtrip:
                self._check_roundtrip(module)

    def _running(self) -> AbstractContextManager[None]:
        args = self.args
        # What passes print themselves must not meet a line that is overwritten.
        prints = (
            args.mlir_print_ir_before,
            args.mlir_print_ir_after,
            args.mlir_print_ir_before_all,
            args.mlir_print_ir_after_all,
        )
        if any(prints) or args.mlir_print_ir_after_change or args.mlir_print_ir_after_failure or args.mlir_timing:
            return nullcontext()
        return step(f"running {self.pipeline}")

    def _run_options(self) -> dict[str, Any]:
        args = self.args
        return {
            "verify": args.verify_each,
            "print_before": ["all"] if args.mlir_print_ir_before_all else args.mlir_print_ir_before,
            "print_after": ["all"] if args.mlir_print_ir_after_all else args.mlir_print_ir_after,
            "print_after_change": args.mlir_print_ir_after_change,
            "print_after_failure": args.mlir_print_ir_after_failure,
            "print_module_scope": args.mlir_print_ir_module_scope,
            "print_debug_info": args.mlir_print_debuginfo,
            "print_local_scope": args.mlir_print_local_scope,
            "print_generic": args.mlir_print_op_generic,
            "timing": args.mlir_timing,
            "debug_origins": args.debug_origins,
        }

    def _print(self, module: Any) -> str | bytes:
        if self.args.emit_bytecode:
            return to_bytecode(module)
        text = module.operation.get_asm(
            enable_debug_info=self.args.mlir_print_debuginfo,
            use_local_scope=self.args.mlir_print_local_scope,
            print_generic_op_form=self.args.mlir_print_op_generic,
        )
        return text if text.endswith("\n") else text + "\n"

    def _check_roundtrip(self, module: Any) -> None:
        def full_text(of: Any) -> str:
            return of.operation.get_asm(enable_debug_info=True)

        text = full_text(module)
        if full_text(parse_module(text)) != text or full_text(parse_module(to_bytecode(module))) != text:
            terminal.say(f"{self.filename}: error: the result does not survive printing and parsing")
            self.failed = True

    def _write(self, outputs: list[str | bytes]) -> None:
        if self.args.emit_bytecode:
            data = b"".join(output for output in outputs if isinstance(output, bytes))
        else:
            data = "// -----\n".join(output for output in outputs if isinstance(output, str)).encode()
        terminal.write_output(self.args.output, data)

    def _fail(self, part: _Part, diagnostics: Sequence[Diagnostic]) -> None:
        # With --verify-diagnostics failures may be what the file expects.
        if not self.args.verify_diagnostics:
            self.failed = True
        self._report(part, diagnostics)

    def _report(self, part: _Part, diagnostics: Sequence[Diagnostic]) -> None:
        for diagnostic in _flatten(diagnostics):
            line = diagnostic.line if diagnostic.file == "-" else None
            part.reports.append(Report(diagnostic.severity, line, diagnostic.message))
        if self.args.verify_diagnostics:
            return
        source = part.source if isinstance(part.source, str) else ""
        for diagnostic in diagnostics:
            terminal.say(explain(diagnostic, source, self.filename))

    def _check_reports(self, part: _Part) -> None:
        source = part.source if isinstance(part.source, str) else ""
        for line, problem in compare(find_expectations(source), part.reports):
            place = f"{self.filename}:{line}" if line else f"{self.filename}: unknown location"
            terminal.say(f"{place}: error: {problem}")
            self.failed = True


def _flatten(diagnostics: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
    for diagnostic in diagnostics:
        yield diagnostic
        yield from _flatten(diagnostic.notes)
