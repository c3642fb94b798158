# SPDX-License-Identifier: Apache-2.0
"""How does a pipeline run on a module? hlotag's passes in C++ alone run in place; with others among them, all run on a copy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hlotag._util.arguments import did_you_mean
from hlotag.errors import ArgumentError, Diagnostic
from hlotag.mlir.modules import copy_of, exchange, to_bytecode
from hlotag.passes import python_passes, syntax
from hlotag.passes.syntax import Element
from hlotag.tagging.keys import why_illegal

if TYPE_CHECKING:
    from jaxlib.mlir import ir


Observer = Callable[[Element, "ir.Module", bool], None]


@dataclass(frozen=True)
class RunOptions:
    """What a caller chooses about a run.

    Attributes:
        verify: Verify what the passes changed: after each pass, or after all of hlotag's own if there are no others.
        debug_origins: Record the origin of each entry that hlotag's passes add, in `hlotag.origins`.
        keep_entry: Fail if the type of the function `main` changes, as JAX calls it by that type.
        source: What messages and origins call the text that the module was read from.
        observe: Gets the element of each pass that ran, the module as the pass left it, and whether the pass succeeded.
    """

    verify: bool = True
    debug_origins: bool = False
    keep_entry: bool = False
    source: str = "-"
    observe: Observer | None = None


@dataclass
class RunResult:
    """What a run did.

    Attributes:
        ok: Whether all passes succeeded.
        failing_pass: The pass that failed; empty if none did.
        diagnostics: What the passes reported, in order.
        exception: What a failing pass in Python raised.
    """

    ok: bool = True
    failing_pass: str = ""
    diagnostics: list[Diagnostic] = field(default_factory=list)
    exception: Exception | None = None


def run(module: ir.Module, elements: Sequence[Element], options: RunOptions) -> RunResult:
    """Runs a pipeline. A failing pass leaves the module unchanged.

    Raises ArgumentError if MLIR rejects an element, before any pass runs.
    """
    if all(map(_is_ours, elements)) and options.observe is None:
        return _run_ours(module, elements, options)
    return _Run(module, elements, options).run()


def _is_ours(element: Element) -> bool:
    return element.name.startswith("hlotag-")


def _run_ours(module: ir.Module, elements: Iterable[Element], options: RunOptions, *, keep_failed: bool = False) -> RunResult:
    from hlotag import _core

    done = _core.run(
        module,
        [(element.name, element.options or {}) for element in elements],
        verify=options.verify,
        debug_origins=options.debug_origins,
        keep_failed=keep_failed,
        source=options.source,
        why_illegal=why_illegal,
    )
    return RunResult(done.ok, done.failing_pass, [Diagnostic.of(d) for d in done.diagnostics])


class _Run:
    """A run on a copy of the module, element by element."""

    def __init__(self, module: ir.Module, elements: Sequence[Element], options: RunOptions) -> None:
        from hlotag import _core

        self.module, self.options = module, options
        self.managers = {element: _manager(element, module, options.verify) for element in elements if element.foreign}
        self.copy = copy_of(module)
        self.reports = _core.Reports(self.copy, options.source)
        self.elements = elements
        self.result = RunResult()

    def run(self) -> RunResult:
        try:
            self.result.ok = all(map(self._run_element, self.elements)) and self._keeps_entry()
            self.result.diagnostics += map(Diagnostic.of, self.reports.take())
        finally:
            self.reports.end()
        # After an exchange the copy lives as long as the module.
        if self.result.ok and to_bytecode(self.copy) != to_bytecode(self.module):
            exchange(self.module, self.copy)
        return self.result

    def _run_element(self, element: Element) -> bool:
        ok = self._run_pass(element)
        self.result.diagnostics += map(Diagnostic.of, self.reports.take())
        if not ok:
            self.result.failing_pass = self.result.failing_pass or element.name
        if self.options.observe is not None:
            self.options.observe(element, self.copy, ok)
        return ok

    def _run_pass(self, element: Element) -> bool:
        if _is_ours(element):
            done = _run_ours(self.copy, [element], self.options, keep_failed=True)
            self.result.failing_pass = done.failing_pass
            self.result.diagnostics += done.diagnostics
            return done.ok
        if element.foreign:
            return self._succeeds(lambda: self.managers[element].run(self.copy.operation))
        failure = python_passes.run(element.name, self.copy, element.options or {})
        if failure is not None:
            self.result.exception, reason = failure
            self.copy.operation.location.emit_error(reason)
            return False
        return not self.options.verify or self._succeeds(self.copy.operation.verify)

    def _succeeds(self, action: Callable[[], Any]) -> bool:
        """Whether a function of jaxlib's succeeds. The reports have its errors."""
        from jaxlib.mlir import ir

        context = self.module.context
        before, context.emit_error_diagnostics = context.emit_error_diagnostics, True
        try:
            return action() is not False
        except ir.MLIRError:
            return False
        finally:
            context.emit_error_diagnostics = before

    def _keeps_entry(self) -> bool:
        if not self.options.keep_entry or (before := _entry_type(self.module)) == (after := _entry_type(self.copy)):
            return True
        self.copy.operation.location.emit_error(
            f"the passes changed the type of the program's entry point from {before} to {after}, but JAX calls it with the "
            "former type"
        )
        return False


def _manager(element: Element, module: ir.Module, verify: bool) -> Any:
    """Jaxlib's pass manager with an element of MLIR's. Raises ArgumentError if MLIR rejects it."""
    from jaxlib.mlir.passmanager import PassManager

    try:
        manager = PassManager.parse(f"builtin.module({element.foreign})", module.context)
    except ValueError as error:
        hint = did_you_mean(element.foreign, syntax.known_passes(), 0.8)
        if any(name in element.foreign for name in syntax.known_passes()):
            hint = "\nhlotag's passes, and those registered with it, run on the top-level builtin.module"
        raise ArgumentError(f"MLIR's pass manager cannot read '{element.foreign}': {str(error).rstrip()}{hint}") from None
    manager.enable_verifier(verify)
    return manager


def _symbol(operation: Any) -> str:
    """The name of a symbol; empty for another operation, and in a dialect with its own attributes, as VHLO."""
    from jaxlib.mlir import ir

    attributes = operation.attributes
    if "sym_name" not in attributes:
        return ""
    name = attributes["sym_name"]
    return name.value if isinstance(name, ir.StringAttr) else ""


def _entry_type(module: ir.Module) -> str:
    """The type of the function that JAX calls."""
    for found in module.body.operations:
        if _symbol(found.operation) == "main":
            return str(found.operation.attributes["function_type"])
    return "nothing"
