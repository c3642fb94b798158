# SPDX-License-Identifier: Apache-2.0
"""What really became of tags, found in ways that the audit does not use: for comparing it with.

The program is compiled a second time with a distinct value on each tagged operation, so that XLA itself says whose entry an
instruction bears, and with a dump after every pass, which says by which pass an operation went. (Distinct values are slow to
compile; that is why the audit does without.) Which instruction computes an operation is read from a table written by hand
(`audit_opcodes.py`).
"""

import itertools
import random
import re
import tempfile
from collections import Counter
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any
from unittest import mock

import jax
from jaxlib.mlir import ir

import hlotag
from audit_opcodes import RELABELLED, computes, rewritten
from hlotag import _compat
from hlotag.audits import TagState, collect, dumps
from hlotag.hlo import HloModule
from hlotag.hlo.module import of_executable
from hlotag.hlo.opcodes import Kind, kind_of
from hlotag.hlo.origins import walk
from hlotag.lowering import hlo_pass
from hlotag.mlir.modules import to_bytecode
from hlotag.tagging import keys

FRONTEND = "mhlo.frontend_attributes"
NEVER = {"func.func", "func.return", "stablehlo.return", "sdy.return", "sdy.mesh"}
VALUES = ("a", "b", "c")
THERE = (TagState.KEPT, TagState.RESTORED)


def operations(module: ir.Module) -> list[ir.Operation]:
    return [operation for operation in walk(module.operation) if operation.name not in NEVER]


def set_entries(operation: ir.Operation, entries: dict[str, str]) -> None:
    old = ir.DictAttr(operation.attributes[FRONTEND]) if FRONTEND in operation.attributes else []
    merged = {entry.name: entry.attr for entry in old}
    merged.update({key: ir.StringAttr.get(value) for key, value in entries.items()})
    operation.attributes[FRONTEND] = ir.DictAttr.get(merged)


@dataclass
class Case:
    """A program with tags on some of its operations."""

    lowered: Any
    names: list[str]  # of the operations
    tags: dict[int, str]  # by operation, the value of the key
    growing: set[int]  # the broadcasts with more elements than their operand
    key: str = "t"


def make(function: Any, args: tuple, seed: int = 0, share: float = 0.7) -> Case:
    lowered = jax.jit(function).lower(*args)
    module = copy_of(lowered)
    chance = random.Random(seed)
    with module.context:
        found = operations(module)
        tags = {n: chance.choice(VALUES) for n in range(len(found)) if chance.random() < share}
        for number, value in tags.items():
            set_entries(found[number], {"t": value})
        return case_of(_compat.modules.with_module(lowered, module), found, tags)


def with_key(lowered: Any, key: str) -> Case:
    """A program as it is, of whose tags those of one key are looked at."""
    module = copy_of(lowered)
    with module.context:
        found = operations(module)
        entries = {n: ir.DictAttr(op.attributes[FRONTEND]) for n, op in enumerate(found) if FRONTEND in op.attributes}
        tags = {n: ir.StringAttr(borne[key]).value for n, borne in entries.items() if key in borne}
        return case_of(lowered, found, tags, key)


def case_of(lowered: Any, found: list[ir.Operation], tags: dict[int, str], key: str = "t") -> Case:
    broadcasts = {n: op for n, op in enumerate(found) if op.name == "stablehlo.broadcast_in_dim"}
    growing = {n for n, op in broadcasts.items() if size(op.operands[0]) < size(op.results[0])}
    return Case(lowered, [operation.name for operation in found], tags, growing, key)


def size(value: ir.Value) -> int:
    """The number of elements of a tensor."""
    return prod(ir.RankedTensorType(value.type).shape)


def copy_of(lowered: Any) -> ir.Module:
    return _compat.modules.read_bytecode(to_bytecode(lowered.compiler_ir("stablehlo")))


# --- The truth -------------------------------------------------------------------------------------------------------------


@dataclass
class Seen:
    """An HLO module, by the names of its instructions."""

    by: str  # the pass that made it so
    instructions: dict[str, Any]
    borne: dict[str, set[int]]  # the operations whose entries an instruction bears
    named: dict[str, list[int]]  # the operations it is named after, callers left out
    inside: dict[str, set[int]]  # the calls it was inlined from


def see(by: str, module: HloModule) -> Seen:
    seen = Seen(by, {}, {}, {}, {})
    for instruction in module.instructions():
        name = instruction.name
        seen.instructions[name] = instruction
        seen.borne[name] = {int(text) for text in instruction.attributes.get("t", "").split(",") if text}
        # Of merged operations and of combined collectives.
        own = re.split(r";|:(?=truth)", instruction.op_name)
        parts = [[int(n) for n in re.findall(r"truth(\d+)\.", part)] for part in own]
        seen.named[name] = [numbers[-1] for numbers in parts if numbers]
        seen.inside[name] = {n for numbers in parts for n in numbers[:-1]}
    return seen


def compile_with_ids(case: Case) -> list[Seen]:
    """The modules after each pass that changed something, the first as XLA was given it, the last optimized."""
    module = copy_of(case.lowered)
    with module.context:
        for number, operation in enumerate(operations(module)):
            if number in case.tags:
                set_entries(operation, {"t": str(number)})
            if operation.name != "stablehlo.constant":
                operation.location = ir.Location.name(f"truth{number}.", operation.location)
    options = {"xla_dump_hlo_as_proto": True, "xla_dump_hlo_pass_re": ".*"}
    with tempfile.TemporaryDirectory() as folder, _compat.modules.without_disk_cache():
        _compat.modules.with_module(case.lowered, module).compile({"xla_dump_to": folder, **options})
        dump = dumps.largest(dumps.find(Path(folder)))
        first, last = dump.ends
        return [see(name, dumps.read(file)) for name, file in (("", first), *dump.passes, ("optimized", last))]


# These passes read a key, and write other operations for one with the key.
READERS = {"convert-memory-placement-to-internal-annotations", "async-collective-fusion"}


class Truth:
    """What became of the tags of a case."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._seen = compile_with_ids(case)
        self._last = self._seen[-1]
        self._made = self._renamed()
        self._merged = self._merged_dots()
        self._of = self._owners()

    def state(self, number: int) -> TagState:
        main = [name for name, owners in self._of.items() if number in owners]
        on = [name for name in main if self._has_value(name, number) and self._has_key(self._last, name)]
        if on and self._copies(number, on, main) == self._copies(number, main, main):
            return TagState.KEPT
        if self._was_taken(number):
            return TagState.CONSUMED
        return TagState.LOST if main else TagState.ELIMINATED

    def _has_value(self, name: str, number: int) -> bool:
        return any(self._case.tags[borne] == self._case.tags[number] for borne in self._last.borne[name])

    def _has_key(self, seen: Seen, name: str) -> bool:
        """Whether the tag is there beside its identity, with the value that it has in the program or that XLA gave it."""
        return self._case.key in seen.instructions[name].attributes

    def _was_taken(self, number: int) -> bool:
        """Whether a pass removed the tag and left its identity, or read the key and took both off the operation."""

        def bearing(seen: Seen) -> set[str]:
            return {name for name, borne in seen.borne.items() if number in borne}

        steps = itertools.pairwise(self._seen) if keys.is_taken(self._case.key) else ()
        is_read = any(after.by in READERS and bearing(before) and not bearing(before) & bearing(after) for before, after in steps)
        return is_read or any(
            number in borne and not self._has_key(seen, name) for seen in self._seen for name, borne in seen.borne.items()
        )

    def _copies(self, number: int, names: list[str], main: list[str]) -> int:
        """As often as an instruction of its own kind is there; where it became others, as often as all of these are."""
        own = self._case.names[number].rpartition(".")[2].replace("_", "-").removesuffix("-in-dim").removesuffix("-general")
        alike = Counter((i.opcode, i.dimensions) for i in map(self._last.instructions.__getitem__, names))
        of_its_kind = [count for (opcode, _), count in alike.items() if opcode == own]
        is_there = any(self._last.instructions[name].opcode == own for name in main)
        return max(of_its_kind, default=0 if is_there else min(alike.values()))

    def is_shared_with_another_value(self, number: int) -> bool:
        """Whether something that computes an operation computes one with another tag, too."""
        tags = self._case.tags
        main = [owners for owners in self._of.values() if number in owners]
        return any(tags.get(o, tags[number]) != tags[number] for owners in main for o in owners)

    def gone_by(self, number: int) -> str:
        """The pass after which nothing that computes the operation is there."""
        last = max((place for place, seen in enumerate(self._seen) if self._is_in(seen, number)), default=None)
        return "conversion to HLO" if last is None else self._seen[last + 1].by if last + 1 < len(self._seen) else ""

    def lost_by(self, number: int) -> str:
        """The pass after which nothing that computes the operation bears its entry."""
        name = self._case.names[number]
        bearing = [
            any(number in borne and computes(name, seen.instructions[i].opcode) for i, borne in seen.borne.items())
            for seen in self._seen
        ]
        last = max((place for place, bears in enumerate(bearing) if bears), default=-1)
        return self._seen[last + 1].by if last >= 0 else "conversion to HLO"

    def _is_in(self, seen: Seen, number: int) -> bool:
        name = self._case.names[number]
        of = (seen.instructions[i].opcode for i, named in seen.named.items() if number in named)
        is_made = any(self._made.get(i) == number for i in seen.instructions)
        return is_made or any(computes(name, opcode) or rewritten(name, opcode) for opcode in of)

    def _owners(self) -> dict[str, set[int]]:
        """By instruction of the last module, the operations that it computes."""
        result: dict[str, set[int]] = {}
        for name, instruction in self._last.instructions.items():
            named = self._last.named[name]
            by_name = {n for n in named if self._computes(n, instruction.opcode)}
            by_name = by_name or {n for n in named[:1] if rewritten(self._case.names[n], instruction.opcode)}
            if instruction.opcode in RELABELLED and named and named[0] not in by_name:
                by_name = set()  # It carries what the first of merged operations computes.
            # Where name and entry differ, one of them was taken from elsewhere.
            by_entry = {n for n in self._last.borne[name] if self._computes(n, instruction.opcode)}
            is_combined = instruction.opcode.startswith("all-") and len(by_entry) > 1  # It has the entries of all.
            result[name] = by_name | by_entry if is_combined else by_name or by_entry
        for name, number in self._made.items():
            if name in result and not result[name]:
                result[name] = {number}
        for name, numbers in self._merged.items():
            result[name] = result.get(name, set()) | numbers
        return {name: owners for name, owners in result.items() if owners}

    def _computes(self, number: int, opcode: str) -> bool:
        """Whether an instruction may compute an operation: a change of shape has as many elements as its operand."""
        return computes(self._case.names[number], opcode) and not (opcode in RELABELLED and number in self._case.growing)

    def _renamed(self) -> dict[str, int]:
        """Instructions that replaced another of the same opcode under another name, or none: pass by pass."""
        made: dict[str, int] = {}
        for before, after in itertools.pairwise(self._seen):
            went = [n for n in before.instructions if n not in after.instructions]
            came = [n for n in after.instructions if n not in before.instructions]
            for opcode in ("dot", "convolution", "reduce", "reduce-window", "scatter", "sort"):
                old = [n for n in went if before.instructions[n].opcode == opcode]
                new = [n for n in came if after.instructions[n].opcode == opcode]
                wrong = [n for n in new if not any(computes(self._case.names[m], opcode) for m in after.named[n])]
                taken = {m for n in new for m in after.named[n]}
                left = [n for n in old if not taken.intersection(self._named_or_made(before, made, n))]
                for come in wrong:
                    # It has its user's name, if that was folded into it; or it is of the same size.
                    alike = [i for i, named in before.named.items() if set(named) & set(after.named[come])]
                    used = {operand.name for i in alike for operand in before.instructions[i].operands}
                    size = prod(after.instructions[come].dimensions)
                    same_size = [n for n in left if prod(before.instructions[n].dimensions) == size]
                    same_name = [n for n in old if set(before.named[n]) & set(after.named[come])]
                    unchanged = [n for n in same_size if n in same_name]
                    folded = [n for n in same_size if n in used]
                    for gone in [*unchanged, *folded, *same_size, *same_name][:1]:
                        left = [n for n in left if n != gone]
                        for number in self._named_or_made(before, made, gone)[:1]:
                            made[come] = number
            if after.by == "splitk-rewriter":  # A dot with one dimension more, and a sum over that.
                sums = [i for name in came if (i := after.instructions[name]).opcode == "reduce"]
                made |= {i.name: made[i.operands[0].name] for i in sums if i.operands[0].name in made}
        return made

    def _merged_dots(self) -> dict[str, set[int]]:
        """The dots that GPU's compiler made of several with one operand in common, and what these computed."""
        merged: dict[str, set[int]] = {}
        for before, after in itertools.pairwise(self._seen):
            came = [i for name, i in after.instructions.items() if name not in before.instructions and i.opcode == "dot"]
            went = [i for name, i in before.instructions.items() if name not in after.instructions and i.opcode == "dot"]
            for dot in came:
                if after.by == "dot-merger":
                    parts = Counter(
                        i.dimensions for i in after.instructions.values() if i.opcode == "slice" and i.operands[0] is dot
                    )
                    shared = {operand.name for operand in dot.operands}
                    of = [i for i in went if parts[i.dimensions] and shared & {operand.name for operand in i.operands}]
                    merged[dot.name] = {n for i in of for n in self._named_or_made(before, self._made, i.name)}
                else:
                    named = set(after.named[dot.name])
                    for old in (i.name for i in went if i.name in merged and named & set(before.named[i.name])):
                        merged[dot.name] = merged[old]
        return {name: numbers for name, numbers in merged.items() if name in self._last.instructions}

    def _named_or_made(self, seen: Seen, made: dict[str, int], name: str) -> list[int]:
        opcode = seen.instructions[name].opcode
        return [made[name]] if name in made else [n for n in seen.named[name] if computes(self._case.names[n], opcode)]


def differences(case: Case, truth: Truth) -> list[str]:
    """The tags that the audit says something else of, one line each; of what JAX itself puts there nothing was compiled."""
    found = hlotag.audit(case.lowered)
    assert [op.name for op in found.ops] == case.names
    return [
        f"{tag.op.id} {tag}, in truth {truth.state(tag.op.id)}: {tag.details}; {tag.instructions}"
        for tag in found.tags
        if tag.key == case.key and tag.state != truth.state(tag.op.id)
    ]


def differences_with_both_stages(case: Case, truth: Truth, *, is_hidden: bool = False) -> list[str]:
    """The same where the HLO pass puts tags right: what follows from the truth without it, and from the module it gives.

    Where XLA does not see the key, no entry tells the moves of one name apart.
    """
    with hlotag.stage() as stage:
        prepared = _compat.modules.with_module(case.lowered, copy_of(case.lowered))
        hlo_pass.prepare(prepared.compiler_ir("stablehlo"), stage)
    with hlo_pass.recorded() as records:
        (module,) = of_executable(prepared.compile())
    after = {i.name: i.attributes for i in records[-1].after.instructions()}
    modules = mock.Mock(side_effect=of_executable)
    with mock.patch.object(collect, "of_executable", modules):
        found = hlotag.audit(prepared)
    (audited,) = of_executable(*modules.call_args.args)
    # XLA numbers the names of instructions by those of operations, and an audit names more of these.
    pairs = list(zip(audited.instructions(), module.instructions(), strict=True))
    assert all((i.opcode, i.dimensions) == (j.opcode, j.dimensions) for i, j in pairs)
    bears = {(i.name, text) for i, j in pairs for text in after.get(j.name, {}).get("t", "").split(",")}
    wrong = []
    for tag in (tag for tag in found.tags if tag.key == "t"):
        before, number = truth.state(tag.op.id), tag.op.id
        is_free = is_hidden and kind_of(tag.op.name) <= Kind.LAYOUT
        if tag.state in THERE:
            # The tag of an operation that became equal to another may be restored on the one that is left.
            is_equal = before == TagState.ELIMINATED and truth.gone_by(number) == "cse"
            is_true = before in (TagState.KEPT, TagState.LOST) or (is_equal and (is_hidden or tag.state == TagState.RESTORED))
            is_true &= all((name, tag.value) in bears for name in tag.instructions)
            is_true &= is_hidden or tag.state == TagState.RESTORED or before != TagState.LOST
        elif tag.state == TagState.LOST:
            # An instruction that stands for several operations has one value for a key.
            is_true = is_free or truth.is_shared_with_another_value(number)
        else:
            is_true = is_free or tag.state == before
        if not is_true:
            wrong.append(f"{number} {tag}, without the HLO pass {before}: {tag.details}; {tag.instructions}")
    return wrong
