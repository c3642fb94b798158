# SPDX-License-Identifier: Apache-2.0
"""Modules that are as big and as badly shaped as they can be.

    python fuzz/hostile.py [NAME ...]     each at its full size and at a quarter of it, in processes of their own

What is shown: no crash, the right result, and time and memory of the passes that grow with the size and not with its square.
The tests run the same cases small. Building, reading and printing the module is jaxlib's work and not counted.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from record import Outcome, record

TYPE = "tensor<f32>"
TAG = '{mhlo.frontend_attributes = {k = "v"}}'
RULES = 'hlotag-attach{rules=\'[{op = "sine", attrs = {k = "v"}}, {scope = "a", attrs = {l = "w"}}]\'}'
EVERYTHING = f"hlotag-resolve,{RULES},hlotag-propagate-autodiff,hlotag-propagate,hlotag-finalize"
QUADRATIC = 10.0
"""Four times the size may take this many times as long: 4 is linear, 16 the square."""


@dataclass(frozen=True)
class Case:
    """A module of a size.

    Attributes:
        full: The size that must work.
        short: The size in the tests.
        build: From a size to the module's text, or to an `ir.Module` in the current context.
        tagged: From a size to how often the tag `k` is in the result.
        pipeline: The passes.
    """

    full: int
    short: int
    build: Callable[[int], Any]
    tagged: Callable[[int], int]
    pipeline: str = EVERYTHING


def _function(body: str, result: str = "%x", name: str = "main", visibility: str = "public") -> str:
    return f"func.func {visibility} @{name}(%x: {TYPE}) -> {TYPE} {{\n{body}\nreturn {result} : {TYPE}\n}}\n"


def _chain(n: int, location: Callable[[int], str]) -> str:
    ops = [f"%{i + 1} = stablehlo.sine %{i} : {TYPE} loc({location(i)})" for i in range(n)]
    return f"func.func @main(%0: {TYPE}) -> {TYPE} {{\n" + "\n".join(ops) + f"\nreturn %{n} : {TYPE}\n}}"


def _operations(n: int) -> str:
    return _chain(n, lambda i: f'"jit(f)/{"transpose(jvp(a))" if i % 2 else "jvp(a)"}/sin"("f"("m.py":{i % 1000}:2 to :9))')


def _tags(n: int) -> str:
    table = ", ".join(f'{{entries = {{k = "v{i}"}}}}' for i in range(n))
    marked = _chain(n, lambda i: rf'"jit(f)/\01hlotag#{i}\01/sin"')
    return f"module attributes {{hlotag.tags = [{table}]}} {{\n{marked}\n}}"


def _keys(n: int) -> str:
    entries = ", ".join(f'k{i} = "v"' for i in range(n))
    call = f'%r = func.call @g(%x) {{mhlo.frontend_attributes = {{{entries}, k = "v"}}}} : ({TYPE}) -> {TYPE}'
    return _function(call, "%r") + _function(f"%r = stablehlo.tanh %x : {TYPE}", "%r", "g", "private")


def _nesting(n: int) -> str:
    head = "".join(f'%r{d} = "stablehlo.case"(%i) ({{\n' for d in range(n))
    tail = "".join(f"}}) : (tensor<i32>) -> {TYPE}\nstablehlo.return %r{d} : {TYPE}\n" for d in range(n - 1, 0, -1))
    body = f"%c = stablehlo.tanh %x : {TYPE}\nstablehlo.return %c : {TYPE}\n{tail}}}) {TAG} : (tensor<i32>) -> {TYPE}"
    return f"func.func @main(%i: tensor<i32>, %x: {TYPE}) -> {TYPE} {{\n{head}{body}\nreturn %r0 : {TYPE}\n}}"


def _named(location: str) -> str:
    return _function(f"%r = stablehlo.sine %x : {TYPE} loc({location})", "%r")


def _path(*parts: str) -> Callable[[int], str]:
    """A scope path of `n` characters in all, made of as many copies of each part in turn as it takes."""

    def build(n: int) -> str:
        share = n // len(parts)
        return _named('"' + "".join(part * max(1, share // len(part)) for part in parts) + '/sin"("f"("m.py":1:2 to :9))')

    return build


def _symbol(n: int) -> str:
    name = "f" * n
    calls = f"%r = func.call @{name}(%x) {TAG} : ({TYPE}) -> {TYPE}\n%s = func.call @{name}(%r) : ({TYPE}) -> {TYPE}"
    return _function(calls, "%s") + _function(f"%r = stablehlo.tanh %x : {TYPE}", "%r", name, "private")


def _calls(targets: Callable[[int, int], list[int]], scope: str = "") -> Callable[[int], str]:
    """`n` functions, each of which calls others, in a scope with its number; the first call of the first is tagged."""

    def build(n: int) -> str:
        functions = []
        for i in range(n):
            body, value = "", "%x"
            for number, target in enumerate(targets(i, n)):
                tag = TAG if i == number == 0 else ""
                place = scope.format(i=i, number=number)
                body += (
                    f'%{number} = func.call @f{target}({value}) {tag} : ({TYPE}) -> {TYPE} loc("jit(f)/{place}jit(f{target})")\n'
                )
                value = f"%{number}"
            functions.append(
                _function(body + f"%r = stablehlo.tanh {value} : {TYPE}", "%r", f"f{i}", "private" if i else "public")
            )
        return "".join(functions)

    return build


def _each_other(n: int) -> str:
    """`n` calls: as many functions as it takes, each of which calls all others."""
    return _calls(lambda i, functions: [j for j in range(functions) if j != i])(isqrt(n))


def _nested_location(head: str, tail: str) -> Callable[[int], str]:
    return lambda n: _named(head * n + '"x"' + tail * n)


def _shared_location(n: int) -> str:
    """A location of `n` levels, of which each has the one before twice."""
    levels = "".join(f"#l{i + 1} = loc(callsite(#l{i} at #l{i}))\n" for i in range(n))
    return f'#l0 = loc("a")\n{levels}' + _named(f"#l{n}")


def _loops(n: int) -> str:
    """`n` nested conditionals, each with a sine beside it in a scope of its own."""
    head = "".join(
        f'%s{d} = stablehlo.sine %x : {TYPE} loc("jit(f)/jvp(s{d})/sin"("m.py":{d}:1))\n'
        f'%c{d} = stablehlo.cosine %x : {TYPE} loc("jit(f)/transpose(jvp(s{d}))/mul"("m.py":{d}:1))\n'
        f'%r{d} = "stablehlo.case"(%i) ({{\n'
        for d in range(n)
    )
    tail = "".join(f"}}) : (tensor<i32>) -> {TYPE}\nstablehlo.return %r{d} : {TYPE}\n" for d in range(n - 1, 0, -1))
    return (
        f"func.func @main(%i: tensor<i32>, %x: {TYPE}) -> {TYPE} {{\n{head}stablehlo.return %x : {TYPE}\n{tail}"
        f"}}) : (tensor<i32>) -> {TYPE}\nreturn %r0 : {TYPE}\n}}"
    )


def _groups(n: int) -> str:
    """A chain of `n` members of scheduling groups, with a gap in every other group."""
    entries = [f'k = "v", _scheduling_group_id = "{i // 4}"' if i % 8 != 1 else 'k = "v"' for i in range(n)]
    ops = [f"%{i + 1} = stablehlo.sine %{i} {{mhlo.frontend_attributes = {{{e}}}}} : {TYPE}" for i, e in enumerate(entries)]
    return f"func.func @main(%0: {TYPE}) -> {TYPE} {{\n" + "\n".join(ops) + f"\nreturn %{n} : {TYPE}\n}}"


def _constant(n: int) -> Any:
    """Not through text: a constant of `n` bytes that differ, as JAX makes one of a NumPy array."""
    import numpy
    from jaxlib.mlir import ir

    module = ir.Module.parse(
        f"func.func @main(%x: {TYPE}) -> {TYPE} {{ %0 = stablehlo.tanh %x {TAG} : {TYPE}\nreturn %0 : {TYPE} }}"
    )
    data = numpy.arange(n // 4, dtype=numpy.int32)
    block = module.body.operations[0].regions[0].blocks[0]
    with ir.Location.unknown(), ir.InsertionPoint.at_block_begin(block):
        type_ = ir.RankedTensorType.get(data.shape, ir.IntegerType.get_signless(32))
        value = ir.DenseElementsAttr.get(data, type=type_)
        ir.Operation.create("stablehlo.constant", results=[type_], attributes={"value": value})
    return module


def one(_: int) -> int:
    """The case has one operation with the tag."""
    return 1


CASES = {
    "operations": Case(1_000_000, 20_000, _operations, lambda n: n),
    "tags": Case(100_000, 5_000, _tags, lambda n: n),
    "keys of one operation": Case(100_000, 5_000, _keys, lambda n: 2),
    "nesting": Case(400, 100, _nesting, lambda n: n + 1),
    "constant, bytes": Case(1 << 30, 1 << 24, _constant, one),
    "symbol name": Case(1_000_000, 100_000, _symbol, lambda n: 2),
    "scope path: plain": Case(1_000_000, 100_000, _path("a/"), one),
    "scope path: open brackets": Case(1_000_000, 100_000, _path("("), one),
    "scope path: closing brackets": Case(1_000_000, 100_000, _path(")/"), one),
    "scope path: transforms": Case(1_000_000, 100_000, _path("jvp("), one),
    "scope path: repeats": Case(1_000_000, 100_000, _path("jvp(a)/", "a/", "jvp(a)/", "a/", "b/", "a/"), one),
    "calls: chain": Case(20_000, 1_000, _calls(lambda i, n: [i + 1] if i + 1 < n else []), lambda n: 2 * n - 2),
    "calls: ring": Case(20_000, 1_000, _calls(lambda i, n: [(i + 1) % n]), lambda n: 2 * n + 1),
    "calls: each other": Case(40_000, 400, _each_other, lambda n: isqrt(n) ** 2 + 1),
    "calls: a scope each": Case(
        20_000, 500, _calls(lambda i, n: [i + 1] * 2 if i + 1 < n else [], "s{i}/{number}/"), lambda n: 3 * n - 4
    ),
    "loops": Case(400, 100, _loops, lambda n: n),
    "groups": Case(100_000, 5_000, _groups, lambda n: n, EVERYTHING + "{on-mistake=warning}"),
    "location: shared": Case(900, 12, _shared_location, one),
    "location: callsites": Case(900, 200, _nested_location("callsite(", ' at "y")'), one),
    "location: names": Case(900, 200, _nested_location('"n"(', ")"), one),
    "location: fused": Case(900, 200, _nested_location("fused[", "]"), one),
    "pipeline": Case(20_000, 500, lambda n: _named('"a"'), one, ""),
}


def run(name: str, size: int, *, verify: bool = True) -> dict[str, Any]:
    """Runs a case in this process.

    Args:
        name: The case.
        size: Its size.
        verify: Whether MLIR verifies the result.

    Returns:
        "seconds" and "bytes" that the passes took; "wrong", what is wrong with the result, or an empty text.
    """
    import hlotag
    from hlotag.mlir.modules import new_context, parse_module

    case = CASES[name]
    pipeline = case.pipeline or ",".join([RULES, *["hlotag-propagate"] * size, "hlotag-finalize"])
    hlotag.run_passes("module {}", EVERYTHING)
    with new_context():
        source = case.build(size)
        module = parse_module(source) if isinstance(source, str) else source
        before, start = _memory(), time.process_time()
        hlotag.run_passes(module, pipeline, verify=verify)
        seconds, grown = time.process_time() - start, _memory() - before
        found = case.tagged(size)
        if not name.startswith("constant"):
            text = module.operation.get_asm(enable_debug_info=False)
            found = text.count('k = "v')
        wrong = "" if found == case.tagged(size) else f"{found} tags, not {case.tagged(size)}"
        return {"seconds": seconds, "bytes": grown, "wrong": wrong}


def _memory() -> int:
    """The most memory the process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _in_child(name: str, size: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", name, str(size)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=3600)
    if done.returncode != 0:
        return {"crash": f"exit status {done.returncode}: {done.stderr[-300:]}", "seconds": 0.0, "bytes": 0, "wrong": ""}
    return json.loads(done.stdout.splitlines()[-1])


def main() -> int:
    """Runs cases at their full size, prints a line for each, and records the sum."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="*")
    parser.add_argument("--child", nargs=2, metavar=("NAME", "SIZE"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(run(args.child[0], int(args.child[1]))), flush=True)
        return 0
    crashes = wrong = 0
    for name in args.name or CASES:
        size = CASES[name].full
        small, large = _in_child(name, size // 4), _in_child(name, size)
        problem = small.get("crash") or large.get("crash") or ""
        crashes += bool(problem)
        growth = large["seconds"] / max(small["seconds"], 0.02)  # below, it is noise
        if not problem:
            problem = small["wrong"] or large["wrong"]
            if growth > QUADRATIC:
                problem = f"four times the size takes {growth:.1f} times as long"
            wrong += bool(problem)
        megabytes = large["bytes"] / (1 << 20)
        print(
            f"{name:30} {size:>11,}  {large['seconds']:8.2f} s  x{growth:4.1f}  {megabytes:7.0f} MiB  {problem or 'ok'}",
            flush=True,
        )
    if not args.name:
        record("Big and hostile modules", Outcome(inputs=2 * len(CASES), crashes=crashes, wrong=wrong))
    return 1 if crashes or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
