# SPDX-License-Identifier: Apache-2.0
"""Which operations of a StableHLO module do its results depend on?"""

from __future__ import annotations

from typing import Any

_EFFECTS = {"infeed", "outfeed", "send", "recv"}


def live_operations(module: Any) -> set[Any]:
    """Finds the operations that a public function needs for a result or a side effect.

    Operations of a loop that only compute an unused carried value are dead.

    Args:
        module: An `ir.Module`.

    Returns:
        The live operations.
    """
    return _Search(module).run()


class _Search:
    def __init__(self, module: Any) -> None:
        self.live: set[Any] = set()
        self._seen: set[tuple] = set()
        self._terminators: dict[tuple, Any] = {}
        self._todo: list[Any] = []
        self._functions: dict[str, Any] = {}
        self._calls: dict[str, list[Any]] = {}
        self._wanted: dict[Any, set[int]] = {}  # by function, the arguments that live operations need
        for view in module.body.operations:
            operation = view.operation
            if operation.name == "func.func":
                self._functions[operation.attributes["sym_name"].value] = operation

    def run(self) -> set[Any]:
        for operation in self._functions.values():
            visibility = operation.attributes["sym_visibility"].value if "sym_visibility" in operation.attributes else "public"
            if visibility != "private":
                self._keep_effects(operation)
                terminator = self._terminator(operation, 0)
                for value in terminator.operands if terminator else ():
                    self._need(value)
        while self._todo:
            self._visit(*self._todo.pop())
        return self.live

    def _need(self, value: Any) -> None:
        owner = value.owner
        operation = getattr(owner, "operation", None)
        if operation is None:
            key = (owner.owner.operation, "argument", value.arg_number)
        else:
            key = (operation, "result", value.result_number)
        if key not in self._seen:
            self._seen.add(key)
            self._todo.append(key)

    def _visit(self, operation: Any, kind: str, number: int) -> None:
        if kind == "argument":
            self._need_argument(operation, number)
        elif operation.name == "stablehlo.while":
            self._keep(operation, whole=False)
            self._need_carried(operation, number)
        elif operation.name == "func.call":
            self._keep(operation, whole=False)
            self._need_call(operation, number)
        elif operation.name in ("stablehlo.case", "stablehlo.if"):
            self._keep(operation, whole=False)
            self._need(operation.operands[0])
            for index in range(len(operation.regions)):
                self._need(self._terminator(operation, index).operands[number])
        else:
            self._keep(operation, whole=True)

    def _keep(self, operation: Any, *, whole: bool) -> None:
        if operation in self.live:
            return
        self.live.add(operation)
        self._keep_effects(operation)
        if not whole:
            return
        for value in operation.operands:
            self._need(value)
        for index in range(len(operation.regions)):
            if (terminator := self._terminator(operation, index)) is not None:
                for value in terminator.operands:
                    self._need(value)

    def _need_argument(self, parent: Any, number: int) -> None:
        if parent.name == "stablehlo.while":
            self._keep(parent, whole=False)
            self._need_carried(parent, number)
        elif parent.name == "func.func":
            # Conservative: every live call needs the argument, whichever of its results is used.
            for call in self._calls.get(parent.attributes["sym_name"].value, ()):
                self._need(call.operands[number])
            self._wanted.setdefault(parent, set()).add(number)
        else:
            self._keep(parent, whole=True)

    def _need_carried(self, loop: Any, number: int) -> None:
        self._need(loop.operands[number])
        self._need(self._terminator(loop, 1).operands[number])
        for value in self._terminator(loop, 0).operands:
            self._need(value)

    def _need_call(self, call: Any, number: int) -> None:
        name = call.attributes["callee"].value
        function = self._functions[name]
        calls = self._calls.setdefault(name, [])
        if call not in calls:
            calls.append(call)
            self._keep_effects(function)
            for argument in self._wanted.get(function, ()):
                self._need(call.operands[argument])
        self._need(self._terminator(function, 0).operands[number])

    def _keep_effects(self, parent: Any) -> bool:
        """Keeps the inner operations with a side effect and the operations around them. Returns whether there are any."""
        found = False
        for region in parent.regions:
            for block in region.blocks:
                for view in block.operations:
                    operation = view.operation
                    if _has_effect(operation) or (len(operation.regions) and self._keep_effects(operation)):
                        self._keep(operation, whole=True)
                        found = True
        return found

    def _terminator(self, operation: Any, index: int) -> Any:
        """The last operation of a region; None if the region is empty."""
        key = (operation, index)
        if key not in self._terminators:
            last = None
            for block in operation.regions[index].blocks:
                for view in block.operations:
                    last = view.operation
            self._terminators[key] = last
        return self._terminators[key]


def _has_effect(operation: Any) -> bool:
    if operation.name == "stablehlo.custom_call":
        return "has_side_effect" in operation.attributes and operation.attributes["has_side_effect"].value
    return operation.name.rpartition(".")[2] in _EFFECTS
