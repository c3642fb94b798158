# SPDX-License-Identifier: Apache-2.0
"""What really became of tags, found in ways that the audit does not use: for comparing it with.

The program is compiled a second time with a distinct value on each tagged operation, so that XLA itself says whose entry an
instruction bears, and with a dump after every pass, which says by which pass an operation went. (Distinct values are slow to
compile; that is why the audit does without.) Which instruction computes an operation is read from a table written by hand
(`audit_opcodes.py`). What is dead is found by taking away, again and again, what has no uses.
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
from audit_opcodes import GLUE, MOVERS, RELABELLED, computes, rewritten
from hlotag import _compat
from hlotag.audits import TagState, collect, dumps
from hlotag.hlo import HloModule
from hlotag.hlo.module import of_executable
from hlotag.hlo.origins import directly_in, walk
from hlotag.lowering import hlo_stage
from hlotag.mlir.modules import to_bytecode
from hlotag.tagging import keys

FRONTEND = "mhlo.frontend_attributes"
NEVER = {"func.func", "func.return", "stablehlo.return", "sdy.return", "sdy.mesh"}
VALUES = ("a", "b", "c")
THERE = (TagState.KEPT, TagState.DUPLICATED, TagState.MERGED, TagState.RESTORED)


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


def has_effect(operation: ir.Operation) -> bool:
    """Whether an operation does more than make its results."""
    if operation.name == "stablehlo.custom_call":
        return "has_side_effect" in operation.attributes and ir.BoolAttr(operation.attributes["has_side_effect"]).value
    effects = ("stablehlo.infeed", "stablehlo.outfeed", "stablehlo.send", "stablehlo.recv")
    return operation.name in effects or any(has_effect(inner) for inner in directly_in(operation))


def unused(module: ir.Module) -> set[int]:
    """The operations that end up without uses when those without uses are taken away, with all that is in them or that only they
    call; of loops that are left, nothing is taken away that is carried."""
    found = operations(module)
    functions = {ir.StringAttr(f.attributes["sym_name"]).value: f for f in directly_in(module.operation) if f.name == "func.func"}
    calls: dict[str, list[ir.Operation]] = {name: [] for name in functions}
    for operation in found:
        if operation.name == "func.call":
            calls[ir.FlatSymbolRefAttr(operation.attributes["callee"]).value].append(operation)
    callees = {call: functions[name] for name, of in calls.items() for call in of}

    def with_effect(operation: ir.Operation) -> bool:
        body = callees.get(operation, operation)
        return has_effect(body) or any(with_effect(inner) for inner in directly_in(body) if inner.name == "func.call")

    gone: set[Any] = set()

    def is_needed(value: Any, within: frozenset = frozenset()) -> bool:
        """Whether anything left uses a value, under whatever name."""
        if value in within:
            return False
        uses = [(use.owner.operation, use.operand_number) for use in value.uses if use.owner.operation not in gone]
        return any(not (same := handed_on(*use)) or any(is_needed(v, within | {value}) for v in same) for use in uses)

    def handed_on(operation: ir.Operation, number: int) -> list[Any]:
        """What an operand is in a function that is called, or what it is outside of that or of a branch."""
        if operation.name == "func.call":
            return [callees[operation].regions[0].blocks[0].arguments[number]]
        if operation.name == "func.return":
            return [call.results[number] for call in calls[ir.StringAttr(operation.parent.attributes["sym_name"]).value]]
        parent = operation.parent.operation
        is_branch = operation.name == "stablehlo.return" and parent.name in ("stablehlo.case", "stablehlo.if")
        return [parent.results[number]] if is_branch else []

    while True:
        bodies = [functions[name] for name, of in calls.items() if of and all(call in gone for call in of)]
        more = {inner for body in (*gone, *bodies) for inner in directly_in(body)}
        more |= {
            operation
            for operation in found
            if operation not in gone and not any(is_needed(result) for result in operation.results) and not with_effect(operation)
        }
        if more <= gone:
            return {number for number, operation in enumerate(found) if operation in gone}
        gone |= more


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
        self._unused = unused(copy_of(case.lowered))

    def state(self, number: int) -> TagState:
        main = [name for name, owners in self._of.items() if number in owners]
        if main:
            on = [name for name in main if self._has_value(name, number)]
            on = [name for name in on if self._has_key(self._last, name)]
            found = self._there(number, main, on) if on else TagState.LOST
            return TagState.USED if found == TagState.LOST and self._was_taken(number) else found
        bearing = [name for name, borne in self._last.borne.items() if number in borne]
        own = [n for n in bearing if number in self._last.named[n] and self._last.instructions[n].opcode in MOVERS]
        if own:
            return TagState.KEPT
        for name in bearing:
            foreign = not any(
                self._case.tags.get(o) == self._case.tags[number] for o in (*self._of.get(name, ()), *self._last.inside[name])
            )
            if self._last.instructions[name].opcode not in GLUE and self._of.get(name) and foreign:
                return TagState.MOVED
        found = self.reason(number)
        return TagState.USED if found == TagState.FOLDED and self._was_taken(number) else found

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

    def _there(self, number: int, main: list[str], on: list[str]) -> TagState:
        own = self._case.names[number].rpartition(".")[2].replace("_", "-").removesuffix("-in-dim").removesuffix("-general")

        def copies(names: list[str]) -> int:
            """As often as an instruction of its own kind is there; where it became others, as often as all of these are."""
            alike = Counter((i.opcode, i.dimensions) for i in map(self._last.instructions.__getitem__, names))
            of_its_kind = [count for (opcode, _), count in alike.items() if opcode == own]
            is_there = any(self._last.instructions[name].opcode == own for name in main)
            return max(of_its_kind, default=0 if is_there else min(alike.values()))

        if copies(on) < copies(main):
            return TagState.LOST
        if any(len(self._of[name]) > 1 for name in on):
            return TagState.MERGED
        return TagState.DUPLICATED if copies(on) > 1 else TagState.KEPT

    def is_shared_with_another_value(self, number: int, besides: int) -> bool:
        """Whether all that computes an operation, besides so many instructions, computes one with another tag, too."""
        tags = self._case.tags
        main = [owners for owners in self._of.values() if number in owners]
        return sum(all(tags.get(o, tags[number]) == tags[number] for o in owners) for owners in main) <= besides < len(main)

    def reason(self, number: int) -> TagState:
        """Why an operation is gone."""
        if number in self._unused:
            return TagState.DEAD
        last = max((place for place, seen in enumerate(self._seen) if self._is_in(seen, number)), default=None)
        took_it = "" if last is None or last + 1 == len(self._seen) else self._seen[last + 1].by
        return TagState.CSED if took_it == "cse" else TagState.FOLDED

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
    found = collect.audit_lowered(case.lowered)
    assert [op.name for op in found.ops] == case.names
    return [
        f"{tag.op.id} {tag}, in truth {truth.state(tag.op.id)}: {tag.steps[-1].detail}; {tag.steps[-1].instructions}"
        for tag in found.tags
        if tag.key == case.key and tag.state != truth.state(tag.op.id)
    ]


def differences_with_both_stages(case: Case, truth: Truth) -> list[str]:
    """The same where the HLO stage puts tags right: what follows from the truth without it, and from the module it gives."""
    with hlotag.stage() as stage:
        prepared = _compat.modules.with_module(case.lowered, copy_of(case.lowered))
        hlo_stage.prepare(prepared.compiler_ir("stablehlo"), stage)
    with hlo_stage.recorded() as records:
        (module,) = of_executable(prepared.compile())
    after = {i.name: i.attributes for i in records[-1].after.instructions()}
    modules = mock.Mock(side_effect=of_executable)
    with mock.patch.object(collect, "of_executable", modules):
        found = collect.audit_lowered(prepared)
    (audited,) = of_executable(*modules.call_args.args)
    # XLA numbers the names of instructions by those of operations, and an audit names more of these.
    pairs = list(zip(audited.instructions(), module.instructions(), strict=True))
    assert all((i.opcode, i.dimensions) == (j.opcode, j.dimensions) for i, j in pairs)
    bears = {(i.name, text) for i, j in pairs for text in after.get(j.name, {}).get("t", "").split(",")}
    wrong = [f"stray: {stray}" for stray in found.strays]
    for tag in (tag for tag in found.tags if tag.key == "t"):
        before, number = truth.state(tag.op.id), tag.op.id
        if tag.state in THERE:
            is_true = before != TagState.DEAD and all((name, tag.value) in bears for name in tag.steps[-1].instructions)
            is_true &= tag.state == TagState.RESTORED or before not in (TagState.LOST, TagState.MOVED)
        elif tag.state == TagState.LOST:
            # An instruction that stands for several operations has one value for a key.
            is_true = truth.is_shared_with_another_value(number, len(tag.steps[-1].instructions))
        else:
            is_true = tag.state == (truth.reason(number) if before == TagState.MOVED else before)
        if not is_true:
            wrong.append(f"{number} {tag}, without the HLO stage {before}: {tag.steps[-1].detail}; {tag.steps[-1].instructions}")
    return wrong
