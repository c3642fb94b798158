# SPDX-License-Identifier: Apache-2.0
"""The command `hlotag opt`, also `hlotag-opt`: it reads a module, runs passes, and writes the result."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlotag._util.arguments import did_you_mean
from hlotag._util.version import VERSION
from hlotag.cli import programs, terminal
from hlotag.errors import ArgumentError, Diagnostic, ParseError
from hlotag.mlir import connection
from hlotag.mlir.modules import BYTECODE_MAGIC, explain, new_context, to_bytecode, try_parse
from hlotag.passes import syntax
from hlotag.passes.jax_artifacts import module_in
from hlotag.passes.pipeline import list_passes, pipeline_text, run_and_report

if TYPE_CHECKING:
    from jaxlib.mlir import ir

    from hlotag.passes.running import Observer
    from hlotag.passes.syntax import Element

_SPLIT_MARKER = re.compile(r"^// -----[^\n]*(?:\n|\Z)", re.MULTILINE)
_PASS_FLAG = re.compile(r"--?(?P<name>[A-Za-z][\w.-]*)(?:=(?P<options>.*))?", re.DOTALL)
_EXAMPLES = """\
examples:
  hlotag-opt module.mlir --hlotag-propagate --cse -o tagged.mlir
  hlotag-opt module.mlir --pass-pipeline='hlotag-strip{keys=debug*},canonicalize'
  hlotag-opt module.mlir --load-pass-plugin=my_passes.py --my-pass=at-most=2
  hlotag-opt module.mlir --hlotag-resolve --mlir-print-ir-after-change -o /dev/null

"""


def add_to(commands: terminal.Commands) -> None:
    """Adds the command. Flags that its parser does not know are passes."""
    parser = terminal.add_command(
        commands,
        "opt",
        run,
        help="run passes on a module, with mlir-opt's flags (also: hlotag-opt)",
        prog="hlotag-opt",
        usage="hlotag-opt [options] [--PASS[=OPTIONS] ...] [file]",
        description="Runs MLIR passes, hlotag's and jaxlib's, on a module as JAX makes them.",
        epilog=_EXAMPLES + _describe_passes(),
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("file", nargs="?", default="-", metavar="FILE", help="text or bytecode; '-' is standard input")
    add("-o", dest="output", default="-", metavar="FILE", help="where to write the result")
    add("--pass-pipeline", metavar="TEXT", help="for example 'builtin.module(hlotag-strip{keys=a,b},cse)'")
    add(
        "--load-pass-plugin",
        action="append",
        default=[],
        metavar="FILE",
        help="a Python file that registers passes",
    )
    add("--split-input-file", action="store_true", help="split at lines '// -----' and process each part on its own")
    add("--allow-unregistered-dialect", action="store_true", help="accept operations of unknown dialects")
    add("--emit-bytecode", action="store_true", help="write bytecode")
    add("--version", action="version", version=f"hlotag {VERSION}", help="print hlotag's version")
    for flag, what in _SWITCHES.items():
        add(flag, action="store_true", help=what)


_SWITCHES = {
    "--mlir-print-ir-before-all": "print the module before each pass",
    "--mlir-print-ir-after-all": "print the module after each pass",
    "--mlir-print-ir-after-change": "print the module after each pass that changed it",
    "--mlir-print-ir-after-failure": "print the module as a failing pass left it",
    "--mlir-print-debuginfo": "print locations",
    "--mlir-print-local-scope": "print locations and attributes in place, without aliases",
    "--mlir-print-op-generic": "print the generic form",
    "--debug-origins": "record in hlotag.origins where the entries come from that passes add",
}


_OF_MLIR_OPT = "mlir-opt has it, and loads hlotag's passes as a plugin, which tools/mlir_opt.sh of hlotag's source builds"
# Flags of mlir-opt that are no passes, and what to do instead.
_INSTEAD = {
    "verify-diagnostics": f"compare stderr, as with FileCheck; {_OF_MLIR_OPT}",
    "mlir-timing": _OF_MLIR_OPT,
    "mlir-print-ir-before": "--mlir-print-ir-before-all prints the module before each pass",
    "mlir-print-ir-after": "--mlir-print-ir-after-all prints the module after each pass",
    "show-dialects": "the dialects are those of JAX; --allow-unregistered-dialect accepts operations of others",
    "run-reproducer": "the error that names a reproducer has the command that replays it",
}


def load_plugins_for_help(argv: Sequence[str]) -> None:
    """Loads the passes of --load-pass-plugin if the command line asks for help, which lists them."""
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    early.add_argument("command", nargs="?")
    early.add_argument("--load-pass-plugin", action="append", default=[])
    early.add_argument("-h", "--help", action="store_true")
    args, _ = early.parse_known_args(argv)
    if args.command == "opt" and args.help:
        _load_plugins(args.load_pass_plugin)


def _load_plugins(files: Sequence[str]) -> None:
    for file in files:
        if not file.endswith(".py"):
            raise ArgumentError(f"{file}: not a Python file; passes of your own are registered by hlotag.register_pass")
        programs.load_passes(file)


def run(args: argparse.Namespace) -> int:
    """Runs the command; `args.passes` has the flags that are passes."""
    _load_plugins(args.load_pass_plugin)
    pipeline = _pipeline_of(args.pass_pipeline, args.passes, list(args.parser._option_string_actions))
    connection.ensure()
    filename = terminal.STDIN if args.file == "-" else args.file
    results = [_result(args, source, filename, pipeline) for source in _read(args, filename)]
    written = [result for result in results if result is not None]
    if written or len(results) > 1:
        terminal.write_output(args.output, (b"" if args.emit_bytecode else b"// -----\n").join(written))
    return 0 if len(written) == len(results) else 1


def _describe_passes() -> str:
    lines = ["passes (and those that jaxlib registers, such as --canonicalize and --cse):"]
    for info in list_passes():
        lines.append(f"  --{info.name:<30} {info.summary}")
        lines += [f"      {o.name}=<{o.type}>: {o.description} (default: {o.default})" for o in info.options]
    return "\n".join(lines)


def _pipeline_of(text: str | None, flags: Sequence[str], options: Sequence[str]) -> str:
    """The pipeline from `--pass-pipeline`, or from the passes' flags in order; `options` are the parser's own flags."""
    elements = []
    for flag in flags:
        match = _PASS_FLAG.fullmatch(flag)
        if match is None:
            raise ArgumentError(f"unexpected argument {flag!r}; one file and flags are expected")
        if instead := _INSTEAD.get(match["name"]):
            raise ArgumentError(f"--{match['name']}: hlotag-opt has no such flag; {instead}")
        if meant := did_you_mean(f"--{match['name']}", options, 0.85):
            raise ArgumentError(f"no such flag or pass: --{match['name']}{meant}")
        elements.append(f"{match['name']}{{{match['options']}}}" if match["options"] else match["name"])
    if text is not None and elements:
        raise ArgumentError("use either --pass-pipeline or a flag for each pass, not both")
    return pipeline_text(text if text is not None else elements)


def _read(args: argparse.Namespace, filename: str) -> list[str | bytes]:
    """The parts of the input: bytecode, or text. Empty lines stand for earlier parts, so that line numbers are the file's."""
    raw = sys.stdin.buffer.read() if args.file == "-" else Path(args.file).read_bytes()
    raw = module_in(raw, filename)
    if raw.startswith(BYTECODE_MAGIC):
        return [raw]
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise ParseError(f"{filename}: neither bytecode nor UTF-8 text: {error}") from None
    if not args.split_input_file:
        return [text]
    parts, line = [], 0
    for part in _SPLIT_MARKER.split(text):
        parts.append("\n" * line + part)
        line += part.count("\n") + 1
    return parts


def _result(args: argparse.Namespace, source: str | bytes, filename: str, pipeline: str) -> bytes | None:
    """The output for a part of the input; None if it fails. Prints the diagnostics."""
    with new_context(allow_unregistered_dialects=args.allow_unregistered_dialect):
        module, diagnostics = try_parse(source)
        ok = module is not None
        if module is not None:
            observe = _observer(args, module, [element.foreign or element.name for element in syntax.parse(pipeline)])
            with redirect_stdout(sys.stderr):
                done = run_and_report(module, pipeline, source=filename, debug_origins=args.debug_origins, observe=observe)
            ok, diagnostics = done.ok, done.diagnostics
        _report(diagnostics, source if isinstance(source, str) else "", filename)
        if module is None or not ok:
            return None
        return to_bytecode(module) if args.emit_bytecode else _text(args, module).encode()


def _report(diagnostics: Sequence[Diagnostic], source: str, filename: str) -> None:
    for diagnostic in diagnostics:
        terminal.say(explain(diagnostic, source, filename))


def _observer(args: argparse.Namespace, module: ir.Module, passes: Sequence[str]) -> Observer | None:
    """Prints the module to stderr before and after the passes that the flags name."""
    flags = (args.mlir_print_ir_before_all, args.mlir_print_ir_after_all)
    if not any((*flags, args.mlir_print_ir_after_change, args.mlir_print_ir_after_failure)):
        return None
    last = to_bytecode(module)
    following = iter(passes)

    def dump_before(module: ir.Module) -> None:
        if args.mlir_print_ir_before_all and (name := next(following, None)) is not None:
            _dump(args, f"Before {name}", module)

    dump_before(module)

    def observe(element: Element, module: ir.Module, ok: bool) -> None:
        nonlocal last
        before, last = last, to_bytecode(module)
        asked = args.mlir_print_ir_after_change and last != before if ok else args.mlir_print_ir_after_failure
        if asked or args.mlir_print_ir_after_all:
            outcome = "" if ok else " Failed"
            _dump(args, f"After {element.foreign or element.name}{outcome}", module)
        if ok:
            dump_before(module)

    return observe


def _dump(args: argparse.Namespace, when: str, module: ir.Module) -> None:
    print(f"// -----// IR Dump {when} //----- //", file=sys.stderr)
    print(_text(args, module), file=sys.stderr)


def _text(args: argparse.Namespace, module: ir.Module) -> str:
    text: Any = module.operation.get_asm(
        enable_debug_info=args.mlir_print_debuginfo,
        use_local_scope=args.mlir_print_local_scope,
        print_generic_op_form=args.mlir_print_op_generic,
    )
    return text if text.endswith("\n") else text + "\n"
