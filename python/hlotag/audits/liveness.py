# SPDX-License-Identifier: Apache-2.0
"""The operations of a StableHLO module that its results depend on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxlib.mlir import ir

_EFFECTS = {"infeed", "outfeed", "send", "recv"}
# Operations whose results need only some of their operands.
_PARTIAL = ("stablehlo.while", "stablehlo.case", "stablehlo.if", "func.call")


def live_operations(module: ir.Module) -> set[Any]:
    """The operations of a module that a public function needs for a result or a side effect.

    Operations of a loop that only compute an unused carried value are dead.
    """
    return _Search(module).run()


class _Search:
    def __init__(self, module: ir.Module) -> None:
        self.live: set[Any] = set()
        # Values, each as an operation and a number: a result of the operation, or an argument of its function or region. An
        # operation with both (a loop) needs the same operand for the result and the argument of one number.
        self._seen: set[tuple[Any, int]] = set()
        self._todo: list[tuple[Any, int]] = []
        self._last: dict[tuple[Any, int], Any] = {}
        operations = [view.operation for view in module.body.operations]
        self._functions = {_value(op, "sym_name"): op for op in operations if op.name == "func.func"}
        self._calls: dict[Any, list[Any]] = {}  # By function, live calls.
        self._wanted: dict[Any, set[int]] = {}  # By function, the arguments that live operations need.

    def run(self) -> set[Any]:
        for function in self._functions.values():
            if _value(function, "sym_visibility") != "private":
                self._keep_effects(function)
                self._need(*self._find_yielded(function, 0))
        while self._todo:
            self._visit(*self._todo.pop())
        return self.live

    def _need(self, *values: Any) -> None:
        for value in values:
            owner = value.owner
            operation = getattr(owner, "operation", None)  # None for a block.
            found = (operation, value.result_number) if operation else (owner.owner.operation, value.arg_number)
            if found not in self._seen:
                self._seen.add(found)
                self._todo.append(found)

    def _visit(self, operation: ir.Operation, number: int) -> None:
        if operation.name == "func.func":
            # Conservative: every live call needs the argument, whichever of its results is used.
            self._wanted.setdefault(operation, set()).add(number)
            self._need(*(call.operands[number] for call in self._calls.get(operation, ())))
            return
        self._keep(operation, whole=operation.name not in _PARTIAL)
        if operation.name == "stablehlo.while":
            self._need(operation.operands[number], self._find_yielded(operation, 1)[number], *self._find_yielded(operation, 0))
        elif operation.name == "func.call":
            self._need_call(operation, number)
        elif operation.name in _PARTIAL:
            regions = range(len(operation.regions))
            self._need(operation.operands[0], *(self._find_yielded(operation, index)[number] for index in regions))

    def _keep(self, operation: ir.Operation, *, whole: bool) -> None:
        if operation not in self.live:
            self.live.add(operation)
            self._keep_effects(operation)
            if whole:
                self._need(*operation.operands)
                for index in range(len(operation.regions)):
                    self._need(*self._find_yielded(operation, index))

    def _need_call(self, call: Any, number: int) -> None:
        function = self._functions[call.attributes["callee"].value]
        calls = self._calls.setdefault(function, [])
        if call not in calls:
            calls.append(call)
            self._keep_effects(function)
            self._need(*(call.operands[argument] for argument in self._wanted.get(function, ())))
        self._need(self._find_yielded(function, 0)[number])

    def _keep_effects(self, parent: Any) -> bool:
        """Keeps the inner operations with a side effect and the operations around them. Returns whether there are any."""
        found = False
        for operation in (view.operation for region in parent.regions for block in region.blocks for view in block.operations):
            if _has_effect(operation) or (len(operation.regions) and self._keep_effects(operation)):
                self._keep(operation, whole=True)
                found = True
        return found

    def _find_yielded(self, operation: ir.Operation, index: int) -> Any:
        """The operands of the last operation of a region."""
        if (operation, index) not in self._last:
            inner = [view.operation for block in operation.regions[index].blocks for view in block.operations]
            self._last[operation, index] = inner[-1].operands if inner else ()
        return self._last[operation, index]


def _value(operation: ir.Operation, name: str) -> Any:
    """The value of an attribute; None without it."""
    attributes: Any = operation.attributes
    return attributes[name].value if name in attributes else None


def _has_effect(operation: ir.Operation) -> bool:
    if operation.name == "stablehlo.custom_call":
        return bool(_value(operation, "has_side_effect"))
    return operation.name.rpartition(".")[2] in _EFFECTS
