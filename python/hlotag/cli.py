# SPDX-License-Identifier: Apache-2.0
"""The command line: `hlotag opt`, `hlotag passes`, `hlotag audit`, `hlotag keys`, and `hlotag-opt`."""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hlotag import _host
from hlotag._deep import with_room
from hlotag._expectations import Report, compare, find_expectations
from hlotag._files import write_atomically
from hlotag.errors import Diagnostic, HlotagError, ParseError, PipelineError
from hlotag.pipeline import (
    explain,
    list_passes,
    nesting_depth,
    new_context,
    parse_module,
    pipeline_text,
    run_and_report,
    to_bytecode,
    try_parse,
)
from hlotag.plugins import load_pass_plugin

_SPLIT_MARKER = re.compile(r"^// -----[^\n]*(?:\n|\Z)", re.MULTILINE)
_PASS_FLAG = re.compile(r"--?(?P<name>[A-Za-z][\w.-]*)(?:=(?P<options>.*))?", re.DOTALL)


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
    }
    if arguments and arguments[0] in commands:
        return commands[arguments[0]](arguments[1:])
    wants_help = bool(arguments) and arguments[0] in ("-h", "--help")
    print(
        "usage: hlotag COMMAND ...\n\n"
        "  opt     run passes on a module, with mlir-opt's flags (also: hlotag-opt)\n"
        "  passes  describe the passes\n"
        "  audit   say where every tag of a module went\n"
        "  keys    list the keys that XLA knows, with their legal values\n",
        file=sys.stdout if wants_help else sys.stderr,
        end="",
    )
    return 0 if wants_help else 2


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
    try:
        for plugin in args.load_pass_plugin:
            load_pass_plugin(plugin)
        pipeline = _pipeline_of(args.pass_pipeline, rest)
        _host.ensure()
        return _Opt(args, pipeline).run()
    except BrokenPipeError:
        return 1
    except (HlotagError, OSError) as error:
        print(f"hlotag-opt: error: {error}", file=sys.stderr)
        return 1


def _passes_main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="hlotag passes", description="Describes hlotag's passes.")
    parser.add_argument("name", nargs="*", help="only these")
    names = parser.parse_args(argv).name
    known = {info.name: info for info in list_passes()}
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"hlotag passes: no such pass: {', '.join(unknown)}; there are: {', '.join(known)}", file=sys.stderr)
        return 1
    for name in names or known:
        info = known[name]
        print(f"{info.name}: {info.summary}\n\n{textwrap.indent(info.description, '  ')}\n")
        for option in info.options:
            print(f"  {option.name} ({option.type}, default {option.default}): {option.description}")
        print()
    return 0


def _keys_main(argv: Sequence[str]) -> int:
    from hlotag import _key_table

    return _key_table.main(argv)


def _audit_main(argv: Sequence[str]) -> int:
    from hlotag.audit import command

    return command.main(argv)


def _flag(text: str) -> bool:
    if text.lower() in ("1", "true"):
        return True
    if text.lower() in ("0", "false"):
        return False
    raise argparse.ArgumentTypeError(f"expected true or false, not {text!r}")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _opt_parser(*, with_passes: bool) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hlotag-opt",
        usage="hlotag-opt [options] [--PASS[=OPTIONS] ...] [file]",
        description="Runs MLIR passes, hlotag's and jaxlib's, on a module as JAX makes them.",
        epilog=_describe_passes() if with_passes else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("file", nargs="?", default="-", help="text or bytecode; '-' is standard input")
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
    return parser


def _describe_passes() -> str:
    lines = ["passes (and those that jaxlib registers, such as --canonicalize and --cse):"]
    for info in list_passes():
        lines.append(f"  --{info.name:<30} {info.summary}")
        lines += [f"      {o.name}=<{o.type}>: {o.description} (default: {o.default})" for o in info.options]
    return "\n".join(lines)


def _pipeline_of(text: str | None, flags: Sequence[str]) -> str:
    """One pipeline from `--pass-pipeline` or from a flag for each pass, in the order given."""
    elements = []
    for flag in flags:
        match = _PASS_FLAG.fullmatch(flag)
        if match is None:
            raise PipelineError(f"unexpected argument {flag!r}")
        elements.append(f"{match['name']}{{{match['options']}}}" if match["options"] else match["name"])
    if text is not None and elements:
        raise PipelineError("use either --pass-pipeline or a flag for each pass, not both")
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

    def run(self) -> int:
        parts = [_Part(source) for source in self._read()]
        for part in parts:
            self._process(part)
            if self.args.verify_diagnostics:
                self._check_reports(part)
        if self.args.verify_diagnostics or not self.failed or len(parts) > 1:
            self._write([part.output for part in parts if part.output is not None])
        return 1 if self.failed else 0

    def _read(self) -> Iterator[str | bytes]:
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
            module, problems = try_parse(part.source)
            if module is None:
                self._fail(part, problems)
                return
            result = run_and_report(module, self.pipeline, **self._run_options())
            diagnostics = [Diagnostic.of(diagnostic) for diagnostic in result.diagnostics]
            if not result.ok:
                self._fail(part, diagnostics)
                return
            self._report(part, diagnostics)
            depth = nesting_depth(part.source)
            part.output = with_room(depth, lambda: self._print(module))
            if self.args.verify_roundtrip:
                self._check_roundtrip(module)

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
            print(f"{self.filename}: error: the result does not survive printing and parsing", file=sys.stderr)
            self.failed = True

    def _write(self, outputs: list[str | bytes]) -> None:
        if self.args.emit_bytecode:
            data = b"".join(output for output in outputs if isinstance(output, bytes))
        else:
            data = "// -----\n".join(output for output in outputs if isinstance(output, str)).encode()
        if self.args.output == "-":
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        else:
            write_atomically(self.args.output, data, private=False)

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
            print(explain(diagnostic, source, self.filename), file=sys.stderr)

    def _check_reports(self, part: _Part) -> None:
        source = part.source if isinstance(part.source, str) else ""
        for line, problem in compare(find_expectations(source), part.reports):
            place = f"{self.filename}:{line}" if line else f"{self.filename}: unknown location"
            print(f"{place}: error: {problem}", file=sys.stderr)
            self.failed = True


def _flatten(diagnostics: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
    for diagnostic in diagnostics:
        yield diagnostic
        yield from _flatten(diagnostic.notes)


if __name__ == "__main__":
    sys.exit(main())
