# SPDX-License-Identifier: Apache-2.0
"""Which programs did a run compile, and why again? An index of a folder, with a page for each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlotag._text import count, list_some
from hlotag._util.files import write_atomically
from hlotag.audits.model import TagState
from hlotag.audits.render.page import assemble
from hlotag.audits.views import Audit

if TYPE_CHECKING:
    from jaxlib.mlir import ir

_TENSOR = re.compile(r"tensor<((?:[\d?]+x)*)(\w+)>")
_NUMBER = re.compile(r"_\d+$")
_NO_FILE = re.compile(r"[^\w.-]+")


@dataclass(frozen=True)
class Compilation:
    """A program that was compiled in a block.

    Attributes:
        audit: Its audit.
        seconds: How long XLA took.
        arguments: Its arguments, `x: f32[64,64]`.
        why: How the arguments differ from those of the last program of its name; empty for the first.
    """

    audit: Audit
    seconds: float
    arguments: tuple[str, ...]
    why: str = ""


@dataclass(frozen=True)
class Entry:
    """A line of an index.

    Attributes:
        compilation: The program.
        runs: How often it ran; None if unknown.
        seconds: How long it ran in all; None if unknown.
    """

    compilation: Compilation
    runs: int | None = None
    seconds: float | None = None


def list_arguments(module: ir.Module) -> tuple[str, ...]:
    """The arguments of a program: the name and type of each."""
    for function in module.body.operations:
        attributes: Any = function.attributes
        if function.operation.name == "func.func" and attributes["sym_name"].value == "main":
            return tuple(
                f"{_name(argument)}: {_in_words(str(argument.type))}" for argument in function.regions[0].blocks[0].arguments
            )
    return ()


def _name(argument: ir.BlockArgument) -> str:
    text = str(argument.location)
    return text[5:-2] if text.startswith('loc("') and text.endswith('")') else f"argument {argument.arg_number}"


def _in_words(type_name: str) -> str:
    """`f32[2,3]` of `tensor<2x3xf32>`."""
    found = _TENSOR.fullmatch(type_name)
    return f"{found[2]}[{','.join(found[1].split('x')[:-1])}]" if found else type_name


class Compilations:
    """The programs of a block, in the order in which they were compiled."""

    def __init__(self) -> None:
        self.found: list[Compilation] = []

    def add(self, made: Compilation) -> None:
        """Adds a program, and compares its arguments with those of the last one of its name."""
        name = base_name(made.audit.name)
        before = next((each for each in reversed(self.found) if base_name(each.audit.name) == name), None)
        self.found.append(made if before is None else replace(made, why=_explain(before.arguments, made.arguments)))


def base_name(name: str) -> str:
    """The name of a program without the number that a block gives it."""
    return _NUMBER.sub("", name)


def _explain(before: Sequence[str], now: Sequence[str]) -> str:
    if len(before) != len(now):
        return f"{count(len(now), 'argument')}, before {len(before)}"
    changed = [f"{is_now}, before {was.rpartition(': ')[2]}" for was, is_now in zip(before, now, strict=True) if was != is_now]
    return list_some(changed) if changed else "equal arguments: another function, static argument, sharding or option"


def write_index(folder: Path, entries: Sequence[Entry], write_page: Callable[[Entry, Path], None]) -> None:
    """Writes `index.html`, and a page and the JSON of each program beside it.

    Args:
        folder: Where; it is made if it does not exist.
        entries: The programs, in the order of the index.
        write_page: Writes the page of an entry.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for entry in entries:
        audit = entry.compilation.audit
        write_page(entry, folder / f"{file_of(audit)}.html")
        write_atomically(folder / f"{file_of(audit)}.json", audit.to_json(), private=False)
    write_atomically(folder / "index.html", assemble("Programs of a run", "\n".join(_body(entries)), _STYLE), private=False)


def file_of(audit: Audit) -> str:
    """The name of a program's files, without their suffix."""
    return _NO_FILE.sub("_", audit.name)


_STYLE = """
td, th { text-align: left; vertical-align: top; }
td.number, th.number { text-align: right; }
td.wide { white-space: normal; min-width: 14rem; }
"""


def _body(entries: Sequence[Entry]) -> Iterator[str]:
    seconds = sum(entry.compilation.seconds for entry in entries)
    again = sum(bool(entry.compilation.why) for entry in entries)
    yield f'<header><h1>Programs of a run</h1><p id="sentence">{count(len(entries), "program")} compiled in {seconds:.1f} s'
    yield f", {again} of them under a name that was compiled before.</p></header>" if again else ".</p></header>"
    has_runs = any(entry.runs is not None for entry in entries)
    columns = [("program", ""), ("compiled", "number"), *([("runs", "number"), ("ran", "number")] if has_runs else [])]
    columns += [("instructions", "number"), ("tags", ""), ("why again", ""), ("arguments", "")]
    head = "".join(f'<th class="{kind}">{name}</th>' if kind else f"<th>{name}</th>" for name, kind in columns)
    yield f'<section><div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>'
    for entry in entries:
        yield _row(entry, has_runs=has_runs)
    yield "</tbody></table></div><p>Programs are compiled anew in the block, so JAX's cache on disk does not count.</p></section>"


def _row(entry: Entry, *, has_runs: bool) -> str:
    made = entry.compilation
    audit = made.audit
    states = ", ".join(f"{audit.counts[state]} {state}" for state in TagState if audit.counts[state])
    needing = sum(tag.needs_attention for tag in audit.tags)
    tags = f'<span class="state lost">{needing} need attention</span>: {states}' if needing else states
    known = ("", "") if entry.runs is None else (str(entry.runs), f"{entry.seconds or 0.0:.3g} s")
    ran = known if has_runs else ()
    arguments = f"<details><summary>{len(made.arguments)}</summary>{'<br>'.join(map(escape, made.arguments))}</details>"
    cells = [f'<td><a href="{escape(file_of(audit))}.html"><code>{escape(audit.name)}</code></a></td>']
    cells += [f'<td class="number">{text}</td>' for text in (f"{made.seconds:.2f} s", *ran, str(audit.instruction_count))]
    cells += [f"<td>{tags}</td>", f'<td class="wide">{escape(made.why)}</td>', f"<td>{arguments}</td>"]
    return f"<tr>{''.join(cells)}</tr>"
