# SPDX-License-Identifier: Apache-2.0
"""Collectives that XLA's partitioner inserted, and the rules for them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hlotag._core import ScopePattern, TextPattern
from hlotag._util.groups import group
from hlotag.hlo import opcodes
from hlotag.hlo.join import join
from hlotag.hlo.module import HloModule, Instruction
from hlotag.hlo.origins import Origins, place_of
from hlotag.tagging import keys
from hlotag.tagging.rules import Bindings, Rule, bind_names

Ids = tuple[int, ...]


@dataclass(frozen=True)
class Inserted:
    """A collective that the program does not have.

    Attributes:
        instruction: The collective, or an end of its asynchronous pair.
        opcode: Without "-start" and "-done": "all-gather".
        scope: That of the operation that takes the gathered value or makes the summed one; "" if unknown.
        phase: That operation's, "forward", "backward" or "recomputed".
        source: Its file, line and column; ("", 0, 0) if unknown.
        number: That operation's number; None if unknown.
    """

    instruction: Instruction
    opcode: str
    scope: str
    phase: str
    source: tuple[str, int, int]
    number: int | None = None


def find_inserted(module: HloModule, ids: Mapping[Instruction, Ids], origins: Origins) -> Iterator[Inserted]:
    """Finds the collectives that XLA's partitioner inserted in a module after it.

    One that XLA combined from several is found once for each. `ids` has the numbers of each instruction (`hlo.join`).
    """
    names: _Names | None = None
    for instruction in module.instructions():
        opcode = opcodes.collective_of(instruction)
        numbers = ids[instruction]
        if not opcode or any(_is_collective(origins.program[number][0]) for number in numbers):
            continue
        if not numbers:
            yield Inserted(instruction, opcode, "", "forward", ("", 0, 0))
        for number in numbers if _is_combined(instruction) else numbers[:1]:
            names = names or _Names(module, origins)
            scope, phase = place_of(names.nearest(instruction, number))
            file, line, column = origins[number].source.rsplit(":", 2) if origins[number].source else ("", 0, 0)
            yield Inserted(instruction, opcode, scope, phase or "forward", (file, int(line), int(column)), number)


def _is_combined(instruction: Instruction) -> bool:
    start = instruction.operands[0] if instruction.opcode.endswith("-done") else instruction
    return len(start.operand_ids) > 1


def _is_collective(operation: str) -> bool:
    return opcodes.opcode_of(operation) in opcodes.COLLECTIVES


class _Names:
    """The names of instructions that are named after one operation."""

    def __init__(self, module: HloModule, origins: Origins) -> None:
        self._origins = origins
        self._numbers: dict[str, int | None] = {}
        self._users = group((operand, i) for i in module.instructions() for operand in i.operands)
        self._all: dict[int, str] = {}
        for instruction in module.instructions():
            if (number := self._number(instruction.op_name)) is not None:
                self._all.setdefault(number, instruction.op_name)

    def nearest(self, instruction: Instruction, number: int) -> str:
        """The plain name of an operation, of the call that an instruction or its users belong to; "" if nothing has the name."""
        reached = [instruction]
        for here in itertools.islice(reached, _MOST_USERS):  # The list grows.
            inside = [i for called in here.called if here.opcode == "fusion" for i in called.instructions]
            for name in (here.op_name, *(i.op_name for i in inside)):
                if number == self._number(name):
                    return self._origins.plain(name)
            reached += self._users.get(here, ())
        return self._origins.plain(self._all.get(number, ""))

    def _number(self, name: str) -> int | None:
        """The number in a name of one operation."""
        if name not in self._numbers:
            ids = self._origins.ids_of(name)
            self._numbers[name] = ids[0] if len(ids) == 1 else None
        return self._numbers[name]


# An operation that takes a gathered value is a few users away.
_MOST_USERS = 256


class InsertedRules:
    """Rules for inserted collectives.

    Args:
        rules: The rules by name, in the order in which later ones win.
    """

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        self._rules = rules
        self.matched: set[str] = set()
        """The names of rules that matched."""

    def keys(self) -> set[str]:
        """The keys that the rules give."""
        return {key for rule in self._rules.values() for key in rule.attrs}

    def __bool__(self) -> bool:
        return bool(self._rules)

    def entries_in(self, module: HloModule, origins: Origins) -> dict[Instruction, dict[str, str]]:
        """The entries of the inserted collectives of a module with numbers in its names.

        Raises TagError as `entries_for`; ParseError for an instruction that refers to an id which is not in the module.
        """
        values: dict[Instruction, dict[str, list[str]]] = {}
        for found, entries in self.matches_in(module, origins):
            for key, value in entries.items():
                values.setdefault(found.instruction, {}).setdefault(key, []).append(value)
        return {instruction: {k: _combine(k, all_) for k, all_ in found.items()} for instruction, found in values.items()}

    def matches_in(self, module: HloModule, origins: Origins) -> Iterator[tuple[Inserted, dict[str, str]]]:
        """As `entries_in`, the collectives with the entries of each."""
        for found in find_inserted(module, join(module, origins), origins) if self._rules else ():
            if entries := self.entries_for(found):
                yield found, entries

    def entries_for(self, collective: Inserted) -> dict[str, str]:
        """The entries that the rules give to a collective.

        Raises TagError if the text of a scope makes a value that is not legal for its key.
        """
        entries: dict[str, str] = {}
        for name, rule in self._rules.items():
            bindings = _bind(rule.patterns(), collective)
            if bindings is None or rule.phase not in ("both", "forward" if collective.phase == "forward" else "backward"):
                continue
            if any(_bind(clause, collective) is not None for clause in rule.clauses()):
                continue
            self.matched.add(name)
            entries |= {key: text for key, text in bind_names(name, rule.texts(), bindings).items() if text is not None}
        return entries


def _combine(key: str, values: list[str]) -> str:
    """The value of a combined collective, as XLA's combiners make it."""
    return values[0] if keys.is_of_one_place(key) else ",".join(sorted(set(values)))


def _bind(patterns: Mapping[str, str], collective: Inserted) -> Bindings | None:
    """The texts of the names in patterns, if all stand for a collective."""
    if "op" in patterns and TextPattern(patterns["op"]).match(collective.opcode) is None:
        return None
    of_source = TextPattern(patterns["source"]).match_source(*collective.source) if "source" in patterns else ()
    of_scope: Bindings | None = ()
    if "scope" in patterns:
        of_scope = ScopePattern(patterns["scope"]).advance(0, collective.scope)[1] if collective.scope else None
    return None if of_source is None or of_scope is None else of_source + of_scope
