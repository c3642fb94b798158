# SPDX-License-Identifier: Apache-2.0
"""The command `hlotag opt`, also `hlotag-opt`: it reads a module, runs passes, and writes the result."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlotag._util.progress import step
from hlotag._util.version import VERSION
from hlotag.cli import programs, terminal
from hlotag.errors import ArgumentError, Diagnostic, ParseError
from hlotag.mlir import connection
from hlotag.mlir.modules import BYTECODE_MAGIC, explain, new_context, parse_module, to_bytecode, try_parse
from hlotag.passes.jax_artifacts import module_in
from hlotag.passes.pipeline import list_passes, pipeline_text, run_and_report

if TYPE_CHECKING:
    from jaxlib.mlir import ir

_SPLIT_MARKER = re.compile(r"^// -----[^\n]*(?:\n|\Z)", re.MULTILINE)
_PASS_FLAG = re.compile(r"--?(?P<name>[A-Za-z][\w.-]*)(?:=(?P<options>.*))?", re.DOTALL)
_OF_RUN = "run."  # Prefix of the destinations of flags that set fields of `RunOptions`.
_PRINTING = ("print_before", "print_after", "print_after_change", "print_after_failure", "timing")
_EXAMPLES = """\
examples:
  hlotag-opt module.mlir --hlotag-propagate-calls --cse -o tagged.mlir
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
    add("--verify-roundtrip", action="store_true", help="check that the result survives printing and parsing")
    add("--allow-unregistered-dialect", action="store_true", help="accept operations of unknown dialects")
    add("--emit-bytecode", action="store_true", help="write bytecode")
    add("--mlir-disable-threading", action="store_true", help="accepted for compatibility; one thread is used anyway")
    add("--version", action="version", version=f"hlotag {VERSION}", help="print hlotag's version")
    _add_run_options(parser)


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    def add(flag: str, name: str, help: str | None = None, action: str = "store_true", **kwargs: Any) -> None:
        parser.add_argument(flag, dest=_OF_RUN + name, help=help, action=action, **kwargs)

    boolean = {"nargs": "?", "type": _flag, "const": True, "default": True, "metavar": "BOOL"}
    add("--verify-each", "verify", "verify after passes", "store", **boolean)
    for when in ("before", "after"):
        add(f"--mlir-print-ir-{when}", f"print_{when}", action="extend", type=_names, default=[], metavar="PASSES")
        add(f"--mlir-print-ir-{when}-all", f"print_{when}", action="append_const", const="all")
    add("--mlir-print-ir-after-change", "print_after_change")
    add("--mlir-print-ir-after-failure", "print_after_failure")
    add("--mlir-print-ir-module-scope", "print_module_scope")
    add("--mlir-print-debuginfo", "print_debug_info", "print locations")
    add("--mlir-print-local-scope", "print_local_scope", "print locations and attributes in place, without aliases")
    add("--mlir-print-op-generic", "print_generic")
    add("--mlir-timing", "timing")
    add("--debug-origins", "debug_origins", "record in hlotag.origins where the entries come from that passes add")


def run(args: argparse.Namespace) -> int:
    """Runs the command; `args.passes` has the flags that are passes."""
    for plugin in args.load_pass_plugin:
        if not plugin.endswith(".py"):
            raise ArgumentError(f"{plugin}: not a Python file; passes of your own are registered by hlotag.register_pass")
        programs.load_passes(plugin)
    pipeline = _pipeline_of(args.pass_pipeline, args.passes, list(args.parser._option_string_actions))
    connection.ensure()
    return _Opt(args, pipeline).run()


def _flag(text: str) -> bool:
    if text.lower() in ("1", "true"):
        return True
    if text.lower() in ("0", "false"):
        return False
    raise argparse.ArgumentTypeError(f"expected true or false, not {text!r}")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


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
        if meant := difflib.get_close_matches(f"--{match['name']}", options, n=1, cutoff=0.85):
            raise ArgumentError(f"no such flag or pass: --{match['name']}; did you mean {meant[0]}?")
        elements.append(f"{match['name']}{{{match['options']}}}" if match["options"] else match["name"])
    if text is not None and elements:
        raise ArgumentError("use either --pass-pipeline or a flag for each pass, not both")
    return pipeline_text(text if text is not None else elements)


@dataclass
class _Part:
    """A part of the input, processed separately.

    Attributes:
        source: Bytecode, or text. Empty lines stand for the parts before it, so that line numbers agree with the file.
        output: The result; None after a failure.
    """

    source: str | bytes
    output: str | bytes | None = None


class _Opt:
    """One run of `hlotag-opt`."""

    def __init__(self, args: argparse.Namespace, pipeline: str) -> None:
        self.args = args
        self.pipeline = pipeline
        self.options = {n.removeprefix(_OF_RUN): value for n, value in vars(args).items() if n.startswith(_OF_RUN)}
        self.filename = terminal.STDIN if args.file == "-" else args.file
        self.options["source"] = self.filename
        self.failed = False
        self._check_names()

    def run(self) -> int:
        parts = [_Part(source) for source in self._read()]
        for part in parts:
            self._process(part)
        if not self.failed or len(parts) > 1:
            self._write([part.output for part in parts if part.output is not None])
        return 1 if self.failed else 0

    def _check_names(self) -> None:
        known = {info.name for info in list_passes()} | {"all"}
        for name in [*self.options["print_before"], *self.options["print_after"]]:
            if name not in known and not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", self.pipeline):
                raise ArgumentError(f"--mlir-print-ir-...={name}: no such pass is in the pipeline {self.pipeline!r}")

    def _read(self) -> Iterator[str | bytes]:
        with step(f"reading {self.filename}"):
            raw = sys.stdin.buffer.read() if self.args.file == "-" else Path(self.args.file).read_bytes()
        raw = module_in(raw, self.filename)
        if raw.startswith(BYTECODE_MAGIC):
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
            with step(f"parsing {self.filename}"):
                module, problems = try_parse(part.source)
            if module is None:
                self._fail(part, problems)
                return
            with self._show_progress(), redirect_stdout(sys.stderr):
                result = run_and_report(module, self.pipeline, **self.options)
            if not result.ok:
                self._fail(part, result.diagnostics)
                return
            self._report(part, result.diagnostics)
            with step("writing the result"):
                part.output = self._print(module)
            if self.args.verify_roundtrip:
                self._check_roundtrip(module)

    def _show_progress(self) -> AbstractContextManager[None]:
        # A progress line would garble the text that passes print.
        prints = any(self.options[name] for name in _PRINTING)
        return nullcontext() if prints else step(f"running {self.pipeline}")

    def _print(self, module: ir.Module) -> str | bytes:
        if self.args.emit_bytecode:
            return to_bytecode(module)
        text: Any = module.operation.get_asm(
            enable_debug_info=self.options["print_debug_info"],
            use_local_scope=self.options["print_local_scope"],
            print_generic_op_form=self.options["print_generic"],
        )
        return text if text.endswith("\n") else text + "\n"

    def _check_roundtrip(self, module: ir.Module) -> None:
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
        self.failed = True
        self._report(part, diagnostics)

    def _report(self, part: _Part, diagnostics: Sequence[Diagnostic]) -> None:
        source = part.source if isinstance(part.source, str) else ""
        for diagnostic in diagnostics:
            terminal.say(explain(diagnostic, source, self.filename))
