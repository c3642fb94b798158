# SPDX-License-Identifier: Apache-2.0
"""Which programs did a run compile, and why again?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hlotag._text import count, list_some
from hlotag.audits.audit import Audit

if TYPE_CHECKING:
    from jaxlib.mlir import ir

_TENSOR = re.compile(r"tensor<((?:[\d?]+x)*)(\w+)>")


@dataclass(frozen=True)
class Compilation:
    """A program that was compiled in a block.

    Attributes:
        name: The name of the function that JAX compiled, `jit_step`; the audit's has a number where several have one name.
        audit: Its audit.
        seconds: How long XLA took.
        arguments: Its arguments, `x: f32[64,64]`.
        why: How the arguments differ from those of the last program of its name; empty for the first.
    """

    name: str
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


def name_of(module: ir.Module) -> str:
    """The name of a module."""
    attributes: Any = module.operation.attributes
    return attributes["sym_name"].value


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
        before = next((each for each in reversed(self.found) if each.name == made.name), None)
        self.found.append(made if before is None else replace(made, why=_explain(before.arguments, made.arguments)))


def _explain(before: Sequence[str], now: Sequence[str]) -> str:
    if len(before) != len(now):
        return f"{count(len(now), 'argument')}, before {len(before)}"
    changed = [f"{is_now}, before {was.rpartition(': ')[2]}" for was, is_now in zip(before, now, strict=True) if was != is_now]
    return list_some(changed) if changed else "equal arguments: another function, static argument, sharding or option"
