# SPDX-License-Identifier: Apache-2.0
"""The operations of a StableHLO module, their tags, and the origins of the tags."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hlotag._util.groups import group
from hlotag.audits.joined import Joined, Named, Place
from hlotag.errors import ParseError
from hlotag.hlo import HloModule
from hlotag.hlo.inserted import InsertedRules, find_inserted
from hlotag.hlo.join import join
from hlotag.hlo.module import Instruction
from hlotag.hlo.opcodes import MOVES, RELABELLING, Kind, kind_of, opcode_of
from hlotag.hlo.origins import RECORDS, Origins, place_of, walk
from hlotag.hlo.restore import tags_of
from hlotag.mlir.modules import SOURCE_NAME, type_in_hlo, undecodable_name
from hlotag.results.tags import Op, OpTags, Origin, default_phase

if TYPE_CHECKING:
    from jaxlib.mlir import ir

FRONTEND = "mhlo.frontend_attributes"

# Structure and terminators, for which XLA has no instruction.
_WITHOUT_INSTRUCTION = {"func.func", "func.return", "stablehlo.return", "sdy.return", "sdy.mesh", "builtin.module"}
_ATTACHING = ("hlotag-resolve", "hlotag-attach")
_DERIVED = "derived by autodiff"
# What gives a value a dimension for the trips of a loop.
_ADDS_DIMENSIONS = {"stablehlo.broadcast_in_dim", "stablehlo.reshape"}
# The functions that JAX lowers the bodies of `shard_map` to for GSPMD.
_BODY = "shmap_body"
# Limit of calls followed from the arguments of one function.
_MAX_CALLERS = 16
# Limit of nested functions that get the line and phase of their call.
_MAX_NESTED = 4
# Limit of forward operations named for one backward operation.
_MAX_FORWARD = 8


@dataclass
class Program:
    """The module that XLA compiles.

    Attributes:
        name: The name of the module.
        ops: Its operations, by id.
        tags: By operation, its tags.
        op_of: By the number that `Origins` gave an operation, its id; in the order of ids.
        origins: The numbering; it holds the module.
        callees: By call, the function that it calls.
    """

    name: str
    ops: list[Op]
    tags: dict[int, OpTags]
    op_of: dict[int, int]
    origins: Origins
    callees: dict[int, str]

    def __post_init__(self) -> None:
        # Instructions share names.
        self._ids_in = functools.cache(lambda name: self.ids_of(self.origins.ids_of(name)))
        self._callers_in = functools.cache(lambda name: self.ids_of(self.origins.callers_of(name)))
        self._numbers = list(self.op_of)  # By id.
        self._place_under = functools.cache(self._find_place)
        # By sum of `find_served`, the call of a function, if any, and the operation whose value is summed.
        self._served_by: dict[int, Sequence[int]] = {}
        self._inserted: dict[Hashable, int] = {}  # By opcode, scope, phase and what it serves, the id.

    def ids_of(self, numbers: Iterable[int]) -> tuple[int, ...]:
        """The ids of numbered operations."""
        return tuple([self.op_of[n] for n in numbers if n in self.op_of])

    def follow(self, module: HloModule) -> Named:
        """By instruction, the operations that it is named after."""
        return {i: self._ids_in(i.op_name) for i in module.instructions()}

    def read_names(self, module: HloModule) -> Iterator[tuple[str, tuple[int, ...], Mapping[str, str]]]:
        """As `follow`, for a module that is looked at once: opcodes, operations and attributes of named instructions."""
        for instruction in module.instructions():
            if ids := self._ids_in(instruction.op_name):
                yield instruction.opcode, ids, instruction.attributes

    def join(self, module: HloModule, rules: InsertedRules | None = None) -> Joined:
        """Joins a module after XLA's passes. Adds the collectives that XLA inserted, with the tags that `rules` give them."""
        named = self.follow(module)
        found = join(module, self.origins, equal=False)
        # An inlined call has no instruction; a call that is left stands for itself, not for the callee's operations.
        joined = {i: named[i] if self._is_call(i, named[i]) else self.ids_of(numbers) or named[i] for i, numbers in found.items()}
        callers = {i: calls for i in named if (calls := self._callers_in(i.op_name))}
        inserted = {i: tuple(ops) for i, ops in group(self._add_inserted(module, found, rules)).items()}
        return Joined(module, named, joined, self._place_in, callers, inserted)

    def _place_in(self, instruction: Instruction, number: int) -> Place:
        return self._place_under(self._callers_in(instruction.op_name), number)

    def _find_place(self, calls: tuple[int, ...], number: int) -> Place:
        """The scope and phase of an operation under calls, outermost first; its own if the calls do not lead to its function."""
        op = self.ops[number]
        path, function = [number], op.function
        # A merged or combined instruction has the calls of several names.
        while (call := next((each for each in calls if self.callees.get(each) == function), None)) is not None:
            path.append(call)
            function = self.ops[call].function
        if op.inserted or len(path) == 1:
            return op.scope, op.phase
        scope, phase = place_of("/".join(map(self._name_of, reversed(path))))
        return scope, phase or op.phase

    def _name_of(self, number: int) -> str:
        """The name of an operation in its function; of a sum that `find_served` found, that of what it serves."""
        return "/".join(self.origins.name_of(self._numbers[each]) for each in self._served_by.get(number, (number,)))

    def find_merged(self, before: HloModule, after: HloModule) -> dict[int, set[int]]:
        """By product after the pass that merges products, the others that became one with it: they have its operands."""
        dots = [{i.name: i for i in module.instructions() if i.opcode == "dot"} for module in (before, after)]
        gone = [dots[0][name] for name in sorted(dots[0].keys() - dots[1].keys())]
        merged: dict[int, set[int]] = {}
        for name in sorted(dots[1].keys() - dots[0].keys()):
            operands = _moved(dots[1][name].operands)
            parts = [i for i in gone if not any(operands.isdisjoint(_moved([operand])) for operand in i.operands)]
            numbers = {number for i in parts if (number := self._product_of(i)) is not None}
            if (own := self._product_of(dots[1][name])) is not None:
                merged.setdefault(own, set()).update(numbers - {own})
        return merged

    def _product_of(self, instruction: Instruction) -> int | None:
        """The product that an instruction is named after, itself or by a transpose of its result."""
        number = next(iter(self._ids_in(instruction.op_name)), None)
        while number is not None and opcode_of(self.ops[number].name) in RELABELLING:
            number = next(iter(self.ops[number].operands), None)
        return number

    def find_served(self, summed: Mapping[int, Sequence[int]]) -> None:
        """Sets scope and `serves` of the sums over devices that JAX's autodiff makes for arguments of a `shard_map`.

        Without `check_vma`, the gradient of an argument that all devices have is summed outside of the scopes in the body.
        `summed` has by sum over devices the operation whose value it sums, and the call if that is in another function.
        """
        for number, definers in summed.items():
            op = self.ops[number]
            calls = [n for n in definers if n in self.callees]
            made = [n for n in definers if n not in calls and self.ops[n].phase == "backward"]
            # The transpose of a sum of the program's has the line of that.
            is_derived = any(self.ops[forward].name == op.name for forward in op.derived_from)
            if op.phase != "backward" or is_derived or len(made) != 1:
                continue
            self._served_by[number] = [*calls, *made]
            scope = self.ops[made[0]].scope
            if calls:
                scope = "/".join(filter(None, (self.ops[calls[0]].scope, place_of(self._name_of(made[0]))[0])))
            self.ops[number] = op._replace(scope=scope, serves=tuple(made))

    def _add_inserted(
        self, module: HloModule, numbers: Mapping[Instruction, tuple[int, ...]], rules: InsertedRules | None
    ) -> Iterator[tuple[Instruction, int]]:
        """The inserted collectives, each with the id of its operation: one for each that they serve, in every module."""
        for found in find_inserted(module, numbers, self.origins):
            serves = self.ids_of([] if found.number is None else [found.number])
            place = found.opcode, found.scope, found.phase, serves
            if place not in self._inserted:
                number = self._inserted[place] = len(self.ops)
                function = self.ops[serves[0]].function if serves else ""
                op = Op(number, found.opcode, found.scope, function, found.phase, *found.source[:2], derived_from=serves)
                self.ops.append(op._replace(inserted=True, serves=serves))
            number = self._inserted[place]
            if rules and (entries := rules.entries_for(found)):
                self.tags.setdefault(number, {}).update(dict.fromkeys(entries.items(), Origin(detail="rule with inserted=True")))
            yield found.instruction, number

    def _is_call(self, instruction: Instruction, named: Sequence[int]) -> bool:
        is_call = instruction.opcode in ("call", "async-start", "async-update", "async-done")
        return is_call and bool(named) and all(self.ops[number].name == "func.call" for number in named)


def read(module: ir.Module, filename: str = "") -> Program:
    """Numbers and reads an `ir.Module` of your own: its locations are changed.

    `filename` is for operations without a line of Python. Raises ParseError if frontend attributes are not a dictionary, or text
    is not UTF-8, which can crash jaxlib's bindings.
    """
    from hlotag import _core
    from hlotag.mlir import connection

    connection.ensure()
    if name := undecodable_name(module):
        raise ParseError(f"the module has text that is not UTF-8 ({name}), which jaxlib's Python bindings cannot read")
    places = _core.provenance(module)
    _name_all(module)
    origins = Origins(module, every=True)
    operations = {n: operation for n, operation in enumerate(origins.operations) if operation.name not in _WITHOUT_INSTRUCTION}
    op_of = {number: id_ for id_, number in enumerate(operations)}
    ids = {operation: op_of[number] for number, operation in operations.items()}
    functions = _functions(origins.operations)
    calls = _Calls(origins.operations)
    ops: list[Op] = []
    tags: dict[int, OpTags] = {}
    for number, operation in operations.items():
        scope, phase, file, line = places[number]
        file = filename if file == SOURCE_NAME else file
        operands = _operands(operation, ids, calls)
        op = Op(op_of[number], operation.name, scope, functions[number], phase, file, line, operands)
        op = op._replace(type=_type_of(operation))
        if FRONTEND in operation.attributes:
            tags[op.id] = _tags(operation, f"{file or filename}:{line}")
        ops.append(op)
    callers = {function: [ids[call] for call in of] for function, of in calls.by_callee.items()}
    ops = _with_phases(_with_lines_of_calls(ops, callers), callers)
    callees = {call: function for function, of in callers.items() for call in of}
    program = Program(_symbol_of(module.operation) or "module", _with_forward(ops), tags, op_of, origins, callees)
    sums = [(n, operation) for n, operation in operations.items() if operation.name == "stablehlo.all_reduce"]
    program.find_served(
        {
            op_of[n]: _definers(_find_summand(operation.operands[0], calls), ids, calls)
            for n, operation in sums
            if "/" not in origins.name_of(n) and _is_returned_by_shard_map(operation)  # In no scope of the body.
        }
    )
    return program


def _is_returned_by_shard_map(operation: ir.Operation) -> bool:
    """Whether an operation is in the body of a `shard_map`, which returns what it makes."""
    around: Any = operation.parent
    is_body = around.name == "sdy.manual_computation" or _symbol_of(around).startswith(_BODY)
    users = {use.owner.name for result in operation.results for use in result.uses}
    return is_body and users <= {"func.return", "sdy.return"}


def _moved(instructions: Iterable[Instruction]) -> set[str]:
    """The names of instructions, and of those whose values they move."""
    found = {i.name: i for i in instructions}
    pending = list(found.values())
    for at in pending:  # The list grows.
        for operand in at.operands if at.opcode in MOVES else ():
            if operand.name not in found:
                found[operand.name] = operand
                pending.append(operand)
    return found.keys() - {name for name, i in found.items() if i.opcode == "constant"}


def _type_of(operation: ir.Operation) -> str:
    """Element type and shape of the first result of an operation; empty if it has none."""
    if not len(operation.results):
        return ""
    name, shape = type_in_hlo(operation.results[0].type)
    text = f"{name}[{','.join('?' if size < 0 else str(size) for size in shape)}]" if name else str(operation.results[0].type)
    more = len(operation.results) - 1
    return f"{text} and {more} more" if more else text


def _symbol_of(operation: Any) -> str:
    attributes: Any = operation.attributes
    return attributes["sym_name"].value if "sym_name" in attributes else ""


def _functions(operations: Iterable[Any]) -> list[str]:
    """For each operation, the name of its function. Functions come before their operations."""
    names: list[str] = []
    for operation in operations:
        starts = operation.name == "func.func"
        names.append(operation.attributes["sym_name"].value if starts else names[-1] if names else "")
    return names


def _with_lines_of_calls(ops: list[Op], callers: Mapping[str, Sequence[int]]) -> list[Op]:
    """Gives operations without a line the line of the call, if all calls of their function are on one line.

    JAX lowers small functions, such as the one behind `jnp.where`, once and without locations.
    """
    called_from: dict[str, tuple[str, int]] = {}
    for _ in range(_MAX_NESTED):
        for function, calls in callers.items():
            found = {(ops[c].file, ops[c].line) if ops[c].file else called_from.get(ops[c].function) for c in calls}
            if len(found) == 1 and (line := found.pop()) is not None:
                called_from[function] = line

    def with_line(op: Op) -> Op:
        file, line = called_from.get(op.function, ("", 0))
        return op._replace(file=file, line=line) if file else op

    return [op if op.file else with_line(op) for op in ops]


def _with_phases(ops: list[Op], callers: Mapping[str, Sequence[int]]) -> list[Op]:
    """Gives each operation a phase.

    Operations of a function without a phase have that of its calls, if it is one. JAX names constants after no phase: they have
    that of their users, if it is one.
    """
    default = default_phase(op.phase for op in ops)
    of_function: dict[str, str] = {}
    for _ in range(_MAX_NESTED):
        for function, calls in callers.items():
            found = {ops[call].phase or of_function.get(ops[call].function, "") for call in calls}
            if len(found) == 1:
                of_function[function] = found.pop()
    ops = [op if op.phase else op._replace(phase=of_function.get(op.function, "")) for op in ops]
    of_users: dict[int, set[str]] = {op.id: set() for op in ops if not op.phase and op.name == "stablehlo.constant"}
    for op in ops:
        for operand in op.operands:
            if operand in of_users:
                of_users[operand].add(op.phase or default)

    def phase(op: Op) -> str:
        found = of_users.get(op.id, ())
        return next(iter(found)) if len(found) == 1 else default

    return [op if op.phase else op._replace(phase=phase(op)) for op in ops]


def _with_forward(ops: list[Op]) -> list[Op]:
    """Sets `derived_from` of the backward operations: the computing forward operations with the same line and scope."""

    def place(op: Op) -> Hashable:
        return op.file, op.line, op.scope

    forward: dict[Hashable, list[int]] = {}  # By place, and by place and name; the first ones only.
    for op in ops:
        if op.phase in ("forward", "other") and op.line and (kind := kind_of(opcode_of(op.name))) >= Kind.POINTWISE:
            for key in (place(op), (place(op), op.name))[: 2 if kind == Kind.HEAVY else 1]:
                if len(known := forward.setdefault(key, [])) < _MAX_FORWARD:
                    known.append(op.id)

    def find_sources(op: Op) -> tuple[int, ...]:
        # A heavy operation derives from an operation with its name: the derivatives of a product are products.
        return tuple(forward.get((place(op), op.name)) or forward.get(place(op), ()))

    return [op._replace(derived_from=find_sources(op)) if op.phase in ("backward", "recomputed") else op for op in ops]


def _name_all(module: ir.Module) -> None:
    """Gives nameless operations a name, by which they can be followed through XLA."""
    from jaxlib.mlir import ir

    with module.context:
        for operation in walk(module.operation):
            if operation.name != "stablehlo.constant" and not isinstance(operation.location, ir.NameLoc):
                operation.location = ir.Location.name(operation.name.rpartition(".")[2], operation.location)


class _Calls:
    """The calls of a module, by which operands are followed into and out of functions."""

    def __init__(self, operations: list[Any]) -> None:
        self.by_callee: dict[str, list[Any]] = {}
        self._return: dict[str, Any] = {}
        for operation in operations:
            if operation.name == "func.call":
                self.by_callee.setdefault(operation.attributes["callee"].value, []).append(operation)
            elif operation.name == "func.return":
                self._return[operation.parent.operation.attributes["sym_name"].value] = operation

    def callers(self, function: Any) -> list[Any]:
        return self.by_callee.get(function.attributes["sym_name"].value, [])[:_MAX_CALLERS]

    def result_of(self, call: Any, number: int) -> Any:
        """The value in the callee that a result of a call comes from."""
        found = self._return.get(call.attributes["callee"].value)
        return None if found is None else found.operands[number]


def _operands(operation: ir.Operation, ids: dict[Any, int], calls: _Calls) -> tuple[int, ...]:
    """The operations that define the operands."""
    return tuple(dict.fromkeys(n for value in operation.operands for n in _definers(value, ids, calls)))


def _definers(value: Any, ids: dict[Any, int], calls: _Calls) -> list[int]:
    """The operations that define a value.

    An argument of a region stands for the operation with the region, an argument of a function for the calls of the function, and
    the result of a call for the operation in the callee and the call.
    """
    producer = _producer_of(value)
    if producer is None:
        around = value.owner.owner.operation
        found = calls.callers(around) if around.name == "func.func" else [around]
    elif producer.name == "func.call" and (inner := calls.result_of(producer, value.result_number)) is not None:
        found = [_producer_of(inner), producer]
    else:
        found = [producer]
    return [ids[each] for each in found if each in ids]


def _producer_of(value: Any) -> Any:
    """The operation that a value is a result of; None for an argument of a block."""
    return getattr(value.owner, "operation", None)


def _find_summand(value: Any, calls: _Calls) -> Any:
    """What one trip of a loop makes of a result of the loop, or stores in that; other values themselves."""
    producer = _producer_of(value)
    if producer is None or producer.name != "stablehlo.while":
        return value
    block = producer.regions[1].blocks[0]
    made = block.operations[len(block.operations) - 1].operands[value.result_number]
    stored = _find_update(made, calls)
    return made if stored is None else stored


def _find_update(value: Any, calls: _Calls) -> Any:
    """What is stored in an array, before it gets the array's dimensions; None if a value is no updated array."""
    producer = _producer_of(value)
    if producer is not None and producer.name == "func.call":
        inner = calls.result_of(producer, value.result_number)
        update = None if inner is None else _find_update(inner, calls)
        if update is None or _producer_of(update) is not None:
            return None
        return producer.operands[update.arg_number]
    if producer is None or producer.name != "stablehlo.dynamic_update_slice":
        return None
    update = producer.operands[1]
    while (moved := _producer_of(update)) is not None and moved.name in _ADDS_DIMENSIONS:
        update = moved.operands[0]
    return update


def _tags(operation: ir.Operation, where: str) -> OpTags:
    from jaxlib.mlir import ir

    if not isinstance(operation.attributes[FRONTEND], ir.DictAttr):
        raise ParseError(f"{where}: {FRONTEND!r} of {operation.name} must be a dictionary")
    try:
        records = _records(operation)
    except ValueError as error:
        raise ParseError(f"{where}: {RECORDS!r} of {operation.name} is not as hlotag writes it: {error}") from None
    # XLA drops values that are not strings. They are tags all the same.
    texts = {}
    for entry in ir.DictAttr(operation.attributes[FRONTEND]):
        try:
            texts[entry.name] = entry.attr.value_bytes.decode() if isinstance(entry.attr, ir.StringAttr) else str(entry.attr)
        except UnicodeDecodeError as error:
            raise ParseError(f"{entry.name!r} of {operation.name} has a value that is not UTF-8: {error}") from None
    return {(key, value): records.get(key, Origin()) for key, value in tags_of(texts).items()}


def _records(operation: ir.Operation) -> dict[str, Origin]:
    """By key, where the operation's tag comes from. Raises ValueError."""
    from jaxlib.mlir import ir

    if RECORDS not in operation.attributes:
        return {}
    return {entry.name: _origin(entry.attr) for entry in ir.DictAttr(operation.attributes[RECORDS])}


def _origin(record: Any) -> Origin:
    from jaxlib.mlir import ir

    fields = {entry.name: ir.StringAttr(entry.attr).value_bytes.decode() for entry in ir.DictAttr(record)}
    how, by = fields.get("step", ""), fields.get("pass", "")
    is_derived = how.endswith(_DERIVED)  # Also by `hlotag-resolve`, from the context of an equation that autodiff made.
    detail = f"{how}, from {fields['from']}" if "from" in fields else how
    confidence = float(fields["confidence"]) if "confidence" in fields else None
    if confidence is not None and not 0 <= confidence <= 1:
        raise ValueError(f"the confidence {confidence} is not between 0 and 1")
    return Origin("attached" if by in _ATTACHING and not is_derived else "propagated", by, detail, confidence)
