# SPDX-License-Identifier: Apache-2.0
"""What does hlotag find out about the HLO modules in a file?

    hlo.py join|restore|work|flow FILE

`// -----` separates the cases in a file. A case is a program in StableHLO, and a module in HLO text from the line `HloModule` on;
`work` and `flow` need no program. The location names an operation, `loc("f/sin")`. In `op_name="..."`, `#f/sin` stands for that
name with the operation's number, as hlotag gives it to XLA; `#9/` for a number that no operation has. Prints the line
`HloModule NAME` for each case, and then, in the order of the text, a line for each instruction with a result:

    join      d: dot add (without: add)     its operations; if the case has `// without: RULE`, also those without this rule
    restore   d: {k=v} f/sin                its entries and its name, and at the end how often `FirstOperation` was asked
    work      d: 8 flops, 16 bytes, effort 12
    flow      d: a b                        the instructions that compute its operands, and at the end the module's results

An operation with its user's name is printed with its kind: `mul.broadcast_in_dim`. With `// keeps numbers`, `restore` does not
remove numbers.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hlotag import _compat, _core
from hlotag.hlo.module import HloModule
from hlotag.hlo.origins import walk
from hlotag.mlir import connection
from hlotag.mlir.modules import new_context, parse_module

TOKEN = "ab"
NUMBER = re.compile(rf"\x01{TOKEN}:(\d+)\x01/")


class Operations:
    """The operations of a program by their names."""

    def __init__(self, text: str):
        module = parse_module(text)
        self.program = _core.number_operations(module, TOKEN, every=False)
        self.names: list[str] = []
        self._numbered: dict[str, set[str]] = {}
        for number, operation in enumerate(walk(module.operation)):
            numbered = getattr(operation.location, "name_str", "")
            plain = NUMBER.sub("", numbered)
            self._numbered.setdefault(plain, set()).add(numbered)
            is_own = numbered == plain or NUMBER.findall(numbered) == [str(number)]
            kind = operation.name.partition(".")[2]
            self.names.append((plain or kind) if is_own else f"{plain}.{kind}")

    def list_names(self, numbers: tuple[int, ...]) -> str:
        """The names of operations. Those of several operations with one name get an index."""
        found = []
        for number in numbers:
            name = self.names[number]
            same = [other for other, each in enumerate(self.names) if each == name]
            found.append(name if len(same) == 1 else f"{name}.{same.index(number)}")
        return " ".join(found) or "none"

    def number(self, op_name: str) -> str:
        """A name with the numbers of the operations that it mentions, for HLO text."""
        known = "|".join(map(re.escape, sorted(filter(None, self._numbered), key=len, reverse=True)))

        def numbered(found: re.Match[str]) -> str:
            if found["other"]:
                return rf"\001{TOKEN}:{found['other']}\001/"
            names = self._numbered[found["known"]]
            assert len(names) == 1, f"several operations are named {found['known']}"
            return min(names).replace("\x01", r"\001")

        return re.sub(rf"#(?:(?P<known>{known or '(?!)'})|(?P<other>\d+)/)", numbered, op_name)

    def shorten(self, op_name: str) -> str:
        """The reverse of `number`."""
        for plain, numbered in self._numbered.items():
            for name in numbered - {plain}:
                op_name = op_name.replace(name, f"#{plain}")
        return op_name


class Module:
    """An HLO module, and its instructions in the order of the text."""

    def __init__(self, text: str, operations: Operations):
        text = re.sub(r'(?<=op_name=")[^"]*', lambda found: operations.number(found[0]), text)
        self.data = _compat.runtime.hlo_from_text(text)
        self.parsed = _core.Module(self.data)
        self.names = [i.name for c in HloModule(self.data).computations.values() for i in c.instructions]
        written = re.findall(r"^\s*(?:ROOT )?([\w.-]+) = ", text, re.MULTILINE)
        assert sorted(written) == sorted(self.names), f"XLA renamed instructions: {set(written) ^ set(self.names)}"
        numbers = {name: number for number, name in enumerate(self.names)}
        self.order = [numbers[name] for name in written]


class FirstOperation:
    """Gives an instruction the entries of its first operation, and notes what else it is told."""

    def __init__(self, program: _core.Program):
        self._entries = program.entries()
        self.num_asked = 0

    def entries_for(
        self,
        before: dict[str, str],
        own: list[int],
        callers: list[int],
        is_operation: bool,
        is_combined: bool,
        *,
        inside: dict[str, str] | None,
    ) -> dict[str, str]:
        self.num_asked += 1
        given = dict(self._entries[own[0]] if inside is None else inside)
        noted = {"callers": len(callers), "combined": is_combined, "helper": not is_operation}
        return given | {key: str(value).lower() for key, value in noted.items() if value}

    def is_repeated(self, key: str) -> bool:
        return key == "repeated"

    def label_for(self, entries: dict[str, str]) -> str:
        return entries.get("label", "")


def join(module: Module, operations: Operations, case: str) -> Iterator[str]:
    left_out = re.search(r"^// without: (.*)", case, re.MULTILINE)
    found = operations.program.join(module.parsed)
    others = operations.program.join(module.parsed, without=left_out[1]) if left_out else found
    for i in module.order:
        names, without = operations.list_names(found[i]), operations.list_names(others[i])
        if (names, without) != ("none", "none"):
            yield f"{module.names[i]}: {names}" + (f" (without: {without})" if without != names else "")


def restore(module: Module, operations: Operations, case: str) -> Iterator[str]:
    rules = FirstOperation(operations.program)
    keeps_numbers = re.search(r"^// keeps numbers", case, re.MULTILINE) is not None
    restored = operations.program.restore(module.data, rules, keeps_numbers=keeps_numbers)
    instructions = [i for c in HloModule(restored).computations.values() for i in c.instructions]
    for i in module.order:
        entries = " ".join(f"{key}={value}" for key, value in sorted(instructions[i].attributes.items()))
        shown = [f"{{{entries}}}" if entries else "", operations.shorten(instructions[i].op_name)]
        if any(shown):
            yield f"{module.names[i]}: {' '.join(filter(None, shown))}"
    yield f"asked: {rules.num_asked}{', nothing changed' if restored == module.data else ''}"


def work(module: Module, operations: Operations, case: str) -> Iterator[str]:
    measured = module.parsed.measure()
    for i in module.order:
        flops, written, effort = measured[i]
        if any(measured[i]):
            yield f"{module.names[i]}: {flops} flops, {written} bytes, effort {effort}"


def flow(module: Module, operations: Operations, case: str) -> Iterator[str]:
    def named(numbers: Any) -> str:
        return " ".join(module.names[number] for number in numbers)

    program = module.parsed.program_of(range(len(module.names)))
    for i in module.order:
        if sources := program[i][2]:
            yield f"{module.names[i]}: {named(sources)}"
    yield f"results: {named(program.results())}"


def main(verb: str, path: str) -> None:
    connection.ensure()
    say = {"join": join, "restore": restore, "work": work, "flow": flow}[verb]
    for case in Path(path).read_text().split("\n// -----\n"):
        program, text = re.split(r"^(?=HloModule )", case, flags=re.MULTILINE)
        print(text.partition("\n")[0])
        try:
            with new_context():
                operations = Operations(program)
                print(*say(Module(text, operations), operations, case), sep="\n")
        except ValueError as error:
            print(f"error: {error}")


main(*sys.argv[1:])
