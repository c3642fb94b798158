# SPDX-License-Identifier: Apache-2.0
"""Writes the expectations of lit tests anew, after a wanted change of what passes print.

    python tools/update_lit.py [--check] lit_tests/passes/*.mlir lit_tests/hlo/*.hlo

Replaces the CHECK lines of a file by all that its first RUN line prints: each function line by line (CHECK-NEXT), with captured
values, so that a stray tag, a swapped operand or another operation fails. A line is before the operation that it is of, if
the pass left all operations of the function; else the lines of a function are before it. In HLO text, a line is before the
instruction that it begins with. Leaves out files whose RUN lines have several prefixes, or verify diagnostics: these are
written by hand. Read the difference before you commit it.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

IMPLICIT = "--implicit-check-not=frontend_attributes"
CHECK = re.compile(r"^\s*// CHECK(-[A-Z]+)?:")
FUNCTION = re.compile(r"^(\s*)func\.func .*?@([\w$.-]+)\(")
OPERATION = re.compile(r'^\s*(?:%[\w:#, %]+ = )?"?((?:stablehlo|chlo|sdy|func|mhlo|test)\.\w+|call|return)\b')
VALUE = re.compile(r"%(\w+)")
INSTRUCTION = re.compile(r"^(\s*)(?:ROOT )?([\w.-]+) = ")
STRING = re.compile(r'("(?:[^"\\]|\\.)*")')
# Lines of the file itself, which its CHECK lines move.
PLACE = re.compile(r'"-":\d+:\d+')
SPLIT = "// -----"
PLAIN = re.compile(r"^\s*(?:module \{|\}|// -----|)$")


class Function(NamedTuple):
    """What a function prints, its first line apart."""

    name: str
    head: str
    body: list[str]


def command_of(text: str) -> str | None:
    """The first RUN line before its FileCheck; None if the file is written by hand."""
    runs = re.sub(r"\s*\\\n// RUN:", "", text)
    lines = re.findall(r"^// RUN: (.*)$", runs, re.MULTILINE)
    is_by_hand = any("check-prefix" in line or "not hlotag-opt" in line or "2>" in line for line in lines)
    if is_by_hand or "--verify-diagnostics" in runs or not lines:
        return None
    return lines[0].partition("| FileCheck")[0]


def printed(path: Path, command: str) -> str:
    """What a command prints of a file."""
    scripts = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}", "JAX_PLATFORMS": "cpu"}
    hlo = f"{sys.executable} {path.parent}/Inputs/hlo.py"
    shown = command.replace("%s", str(path)).replace("%S", str(path.parent)).replace("%hlo", hlo)
    return subprocess.run(["bash", "-c", shown], env=environment, check=True, capture_output=True, text=True).stdout


def functions_in(text: str) -> Iterator[Function | str]:
    """The functions, and the lines outside of them that say something."""
    lines = iter(text.splitlines())
    for line in lines:
        if not (found := FUNCTION.match(line)):
            if not PLAIN.match(line):
                yield line
            continue
        body = []
        if line.rstrip().endswith("{") or re.search(r"\{ loc\(.*\)$|\{$", line):
            for inner in lines:
                body.append(inner)
                if inner.startswith(f"{found[1]}}}"):
                    break
        yield Function(found[2], line.strip(), body)


class Pattern:
    """Text of MLIR as patterns of FileCheck: a value is captured where it comes first."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def __call__(self, text: str) -> str:
        text = text.strip().replace("[[", r"{{\[\[}}").replace("]]", r"{{\]\]}}")
        text = PLACE.sub('{{"-":[0-9:]+}}', text)
        return "".join(part if part.startswith('"') else VALUE.sub(self._value, part) for part in STRING.split(text))

    def _value(self, found: re.Match[str]) -> str:
        name = f"V{found[1]}" if found[1][0].isdigit() else found[1].upper()
        if name in self._seen:
            return f"%[[{name}]]"
        self._seen.add(name)
        return f"%[[{name}:.*]]"


def expectations(function: Function) -> list[tuple[str, str]]:
    """The CHECK lines of a function, each with the operation that it is of; empty for lines of the operation before."""
    pattern = Pattern()
    label, _, rest = function.head.partition(f"@{function.name}(")
    made = [("", f"// CHECK-LABEL: {label}@{function.name}("), ("", f"// CHECK-SAME: {pattern(rest)}")]
    for line in function.body:
        operation = OPERATION.match(line)
        made.append((operation[1] if operation else "", f"// CHECK-NEXT: {pattern(line)}"))
    return made


def body_of(lines: Sequence[str], start: int) -> int:
    """The line after a function that begins at a line."""
    indent = re.match(r"\s*", lines[start])
    closing = f"{indent[0] if indent else ''}}}"
    if not re.search(r"\{\s*(loc\(.*\))?$", lines[start]):
        return start + 1
    return next((n for n in range(start + 1, len(lines)) if lines[n].startswith(closing)), start) + 1


def rewrite(text: str, shown: str) -> str:
    """The file with the expectations of what it prints."""
    sections, found = text.split(f"{SPLIT}\n"), shown.split(f"{SPLIT}\n")
    if len(sections) != len(found):
        sections, found = [text], [shown]
    return f"{SPLIT}\n".join(map(rewrite_section, sections, found))


def rewrite_section(text: str, shown: str) -> str:
    """A part of a file that is a module of its own, with the expectations of what it prints."""
    lines = [line for line in text.split("\n") if not CHECK.match(line)]
    starts = {found[2]: n for n, line in enumerate(lines) if (found := FUNCTION.match(line))}
    before: dict[int, list[str]] = {}  # By line, what is written before it.
    at = next((n for n, line in enumerate(lines) if line.strip() and not line.startswith("//")), 0)
    for found in functions_in(shown):
        if isinstance(found, str):
            before.setdefault(at, []).append(f"// CHECK: {Pattern()(found)}")
            continue
        start = starts.get(found.name, -1)
        made = expectations(found)
        if start < at:  # The pass made it, or moved it.
            before.setdefault(at, []).extend(line for _, line in made)
            continue
        end = body_of(lines, start)
        own = [(n, o[1]) for n in range(start + 1, end) if (o := OPERATION.match(lines[n]))]
        if [name for _, name in own] == [name for name, _ in made if name]:
            place = start
            pending = iter(own)
            for name, line in made:
                place = next(pending)[0] if name else place
                before.setdefault(place if name or place == start else place + 1, []).append(line)
        else:
            before.setdefault(start, []).extend(line for _, line in made)
        at = end
    result = []
    for n, line in enumerate([*lines, ""]):
        indent = re.match(r"\s*", line)
        result += [f"{indent[0] if indent and line.strip() else ''}{check}" for check in before.get(n, ())]
        result.append(line)
    return "\n".join(result).rstrip("\n") + "\n" * max(1, len(text) - len(text.rstrip("\n")))


def rewrite_hlo(text: str, shown: str) -> str:
    """As `rewrite`, for a file with modules in HLO text."""
    printed = re.split(r"^(?=HloModule )", shown, flags=re.MULTILINE)[1:]
    cases = text.split(f"{SPLIT}\n")
    return f"{SPLIT}\n".join(rewrite_case(case, made.splitlines()) for case, made in zip(cases, printed, strict=True))


def rewrite_case(text: str, shown: list[str]) -> str:
    """A program and its module. Lines that begin with no instruction, such as an error, are at the end."""
    head, *pending = shown
    result = []
    for line in text.rstrip("\n").split("\n"):
        if CHECK.match(line):
            continue
        if line == head:
            result.append(f"// CHECK-LABEL: {line}")
        elif (found := INSTRUCTION.match(line)) and pending and pending[0].startswith(f"{found[2]}: "):
            result.append(f"{found[1]}// CHECK-NEXT: {pending.pop(0)}")
        result.append(line)
    result += [f"// CHECK-NEXT: {line}" for line in pending]
    return "\n".join(result) + "\n" * (len(text) - len(text.rstrip("\n")))


def update(path: Path) -> tuple[str, str] | None:
    """The text of a file before and after; None if it is written by hand."""
    text = path.read_text()
    if (command := command_of(text)) is None:
        return None
    if path.suffix == ".hlo":
        return text, rewrite_hlo(text, printed(path, command))
    exact = re.sub(rf"\| FileCheck %s(?!.*{IMPLICIT})", f"| FileCheck %s {IMPLICIT}", text)
    return text, rewrite(exact, printed(path, command))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with status 1 if a file would change")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    args = parser.parse_args()
    status = 0
    for path in args.files:
        if (found := update(path)) and found[0] != found[1]:
            status = 1
            print(path)
            if not args.check:
                path.write_text(found[1])
    return status if args.check else 0


if __name__ == "__main__":
    raise SystemExit(main())
