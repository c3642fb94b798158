# SPDX-License-Identifier: Apache-2.0
"""Passes on random modules: `hlotag-propagate` against what a tag is, and that a failure undoes every change before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hlotag
from hlotag.mlir.modules import new_context, parse_module

UNSET = '["hlotag.unset"]'
XLA_KEY = "MUST_FUSE"
Tags = dict[str, str]


@dataclass(frozen=True)
class Node:
    """An operation of a random module: a branch, a reduction, a call of a later function, or one without regions."""

    kind: str
    own: tuple[tuple[str, str], ...]
    inside: tuple[Node, ...] = ()
    callee: int = 0


def what_operations_have(functions: Sequence[Sequence[Node]], body: Sequence[Node], outer: Tags) -> Iterator[Tags]:
    """The definition: the tags of the operations that a body runs, of those in a call after the call."""
    for node in body:
        tags = outer | dict(node.own)
        yield {key: value for key, value in tags.items() if value != UNSET}
        if node.kind == "call":
            yield from what_operations_have(functions, functions[node.callee] if node.callee < len(functions) else (), tags)
        else:
            inner = {key: value for key, value in tags.items() if key != XLA_KEY}
            yield from what_operations_have(functions, node.inside, inner)


own = st.lists(st.tuples(st.sampled_from(["k", "l", XLA_KEY]), st.sampled_from(['"1"', '"2"', UNSET])), max_size=2).map(
    lambda entries: tuple(dict(entries).items())
)
leaves = st.builds(Node, st.just("sine"), own)


def nodes(function: int) -> st.SearchStrategy[Node]:
    calls = st.builds(Node, st.just("call"), own, callee=st.integers(function + 1, function + 2))
    return st.recursive(
        leaves | calls,
        lambda inner: st.builds(Node, st.sampled_from(["case", "reduce"]), own, st.lists(inner, max_size=3).map(tuple)),
        max_leaves=5,
    )


MODULES = st.tuples(*(st.lists(nodes(function), max_size=3) for function in range(4)))


def write(functions: Sequence[Sequence[Node]], roots: set[int]) -> str:
    """The module's text; `roots` are public, and so may run without being called."""
    number = iter(range(1 << 20))

    def attributes(node: Node) -> str:
        entries = ", ".join(f"{key} = {value}" for key, value in node.own)
        return f"{{mhlo.frontend_attributes = {{{entries}}}}}" if entries else ""

    def line(node: Node) -> str:
        name, tags = next(number), attributes(node)
        if node.kind == "call" and node.callee < len(functions):
            types = "(tensor<f32>, tensor<i32>, tensor<4xf32>) -> tensor<f32>"
            return f"%{name} = func.call @f{node.callee}(%x, %i, %v) {tags} : {types}"
        inside = "\n".join(line(inner) for inner in node.inside) + "\nstablehlo.return %x : tensor<f32>"
        if node.kind == "case":
            return f'%{name} = "stablehlo.case"(%i) ({{ {inside} }}) {tags} : (tensor<i32>) -> tensor<f32>'
        if node.kind == "reduce":
            arguments = f"^bb0(%a{name}: tensor<f32>, %b{name}: tensor<f32>):"
            dimensions = "<{dimensions = array<i64: 0>}>"
            types = "(tensor<4xf32>, tensor<f32>) -> tensor<f32>"
            return f'%{name} = "stablehlo.reduce"(%v, %x) {dimensions} ({{ {arguments} {inside} }}) {tags} : {types}'
        return f"%{name} = stablehlo.sine %x {tags} : tensor<f32>"

    texts = []
    for function, body in enumerate(functions):
        visibility = "public" if function in roots else "private"
        head = f"func.func {visibility} @f{function}(%x: tensor<f32>, %i: tensor<i32>, %v: tensor<4xf32>) -> tensor<f32>"
        texts.append(f"{head} {{\n" + "\n".join(map(line, body)) + "\nreturn %x : tensor<f32>\n}")
    return "\n".join(texts)


def read(text: str, root: str) -> Iterator[Tags]:
    """The tags of the operations that a function of a module runs, in the order of `what_operations_have`."""
    with new_context():
        module = parse_module(text)
        functions = {op.attributes["sym_name"].value: op for op in module.body.operations}

        def walk(block) -> Iterator[Tags]:
            for op in list(block.operations)[:-1]:
                found = op.attributes.get("mhlo.frontend_attributes", ())
                yield {entry.name: str(entry.attr) for entry in found if str(entry.attr) != UNSET}
                for region in op.regions:
                    yield from walk(region.blocks[0])
                if op.operation.name == "func.call":
                    yield from walk(functions[op.attributes["callee"].value].regions[0].blocks[0])

        yield from walk(functions[root].regions[0].blocks[0])


@settings(max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(MODULES, st.sets(st.integers(1, 3), max_size=1))
def test_the_innermost_operation_that_has_a_key_decides(functions, also_public):
    roots = {0} | also_public
    once = hlotag.run_passes(write(functions, roots), "hlotag-propagate")
    for root in roots:
        assert list(read(once, f"f{root}")) == list(what_operations_have(functions, functions[root], {}))
    assert hlotag.run_passes(once, "hlotag-propagate") == once


# Passes that change entries, locations, attributes and functions, each again and again.
CHANGES = (
    "hlotag-propagate",
    "hlotag-strip{keys=k}",
    "hlotag-strip",
    'hlotag-attach{rules=\'[{op = "sine", attrs = {k = "3", n = "4"}}]\'}',
    'hlotag-attach{rules=\'[{op = "sine", attrs = {k = "5"}, grad = {}}]\'}',
    "hlotag-propagate-autodiff",
)
_MARKED = """
func.func public @marked(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x : tensor<f32> loc("a/\\01hlotag#0\\01/sin")
  return %0 : tensor<f32>
}"""


@settings(max_examples=30, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(MODULES, st.lists(st.sampled_from(CHANGES), max_size=6))
def test_a_failing_pipeline_leaves_the_module_as_it_was(functions, changes):
    text = f'module attributes {{hlotag.tags = [{{entries = {{k = "1"}}}}]}} {{{write(functions, {0})}{_MARKED}}}'
    with new_context():
        module = parse_module(text)
        before = module.operation.get_asm(enable_debug_info=True)
        hlotag.run_passes(parse_module(text), ",".join(["hlotag-resolve", *changes]))
        with pytest.raises(hlotag.errors.PassError):
            hlotag.run_passes(module, ",".join(["hlotag-resolve", *changes, "hlotag-attach{rules=nonsense}"]))
        assert module.operation.get_asm(enable_debug_info=True) == before
