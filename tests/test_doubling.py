# SPDX-License-Identifier: Apache-2.0
"""Twice the size takes each pass and the HLO pass less than 2.5 times as long, in every shape of a module."""

import gc
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial

import hostile
import pytest
from hostile import CASES, RULES, TYPE
from jaxlib.mlir import ir

import hlotag
from hlotag import _core
from hlotag._compat.runtime import module_to_computation
from hlotag.hlo.origins import Origins
from hlotag.hlo.restore import Rules
from hlotag.mlir import connection
from hlotag.mlir.modules import new_context, parse_module, to_bytecode

LINEAR = 2.5
"""Twice the size may take less than this many times as long: 2 is linear, 4 the square."""
ENTRIES = 'mhlo.frontend_attributes = {k = "v"}'
MARKED = 'module attributes {hlotag.tags = [{entries = {a = "1"}}]} {\n'


def shared_locations(n: int) -> str:
    """`n` operations inlined from one place: 30 levels of calls, of which each has the one before twice."""
    levels = "".join(f"#l{i + 1} = loc(callsite(#l{i} at #l{i}))\n" for i in range(30))
    ops = (
        f"%{i + 1} = stablehlo.sine %{i} {{{ENTRIES}}} : {TYPE} "
        rf'loc(callsite("jit(f)/\01hlotag#0\01/s{i}"("m.py":{i}:1) at #l30))'
        for i in range(n)
    )
    body = "\n".join(ops)
    return f'#l0 = loc("a")\n{levels}{MARKED}func.func @main(%0: {TYPE}) -> {TYPE} {{\n{body}\nreturn %{n} : {TYPE}\n}}\n}}'


def chain(n: int) -> str:
    """A chain of `n` operations, of which every other is derived from the one before it, with marks and entries."""
    names = (r"jvp(\01hlotag#0\01)/sin", r"transpose(jvp(\01hlotag#0\01))/mul")
    ops = (
        f'%{i + 1} = stablehlo.sine %{i} {{{ENTRIES}}} : {TYPE} loc("jit(f)/{names[i % 2]}"("m.py":{i // 2}:1))' for i in range(n)
    )
    body = "\n".join(ops)
    return f"{MARKED}func.func @main(%0: {TYPE}) -> {TYPE} {{\n{body}\nreturn %{n} : {TYPE}\n}}\n}}"


# By shape: the module's text, and the smaller of its two sizes.
SHAPES: dict[str, tuple[Callable[[int], str], int]] = {
    "chain": (chain, 4_000),
    "shared locations": (shared_locations, 2_000),
    "nested regions": (CASES["loops"].build, 500),
    "calls": (CASES["calls: chain"].build, 1_500),
    "calls with scopes": (CASES["calls: a scope each"].build, 1_000),
    "keys": (CASES["keys of one operation"].build, 4_000),
}
ATTACHED = f"hlotag-resolve,{RULES}"
# By pass: those before it, and the pass with something to do.
PASSES = {
    "hlotag-resolve": ("", "hlotag-resolve"),
    "hlotag-attach": ("hlotag-resolve", RULES),
    "hlotag-propagate-autodiff": (ATTACHED, "hlotag-propagate-autodiff"),
    "hlotag-propagate": (ATTACHED, "hlotag-propagate"),
    "hlotag-strip": (ATTACHED, "hlotag-strip"),
    "hlotag-finalize": (ATTACHED, "hlotag-finalize"),
}


def test_every_pass_is_in_the_table():
    assert set(PASSES) == {found["argument"] for found in _core.list_passes()}


def least_growth(run: Callable[[int], float], *sizes: int) -> float:
    """How many times as long a doubling takes, by the least times of up to ten runs of two doublings.

    A small module may fit a cache that a large one does not: then the next size decides, where a quadratic pass is as slow.
    """
    growth = math.inf
    for size in sizes:
        growth = min(growth, growth_from(run, size))
        if growth < LINEAR:
            break
    return growth


def growth_from(run: Callable[[int], float], size: int) -> float:
    least = [math.inf, math.inf]
    for _ in range(10):
        for i, times in enumerate((1, 4)):
            least[i] = min(least[i], run(times * size))
        growth = math.sqrt(least[1] / max(least[0], 0.001))  # below, it is noise
        if growth < LINEAR:
            break
    return growth


def parsed(text: str) -> ir.Module:
    """By MLIR alone, which reads text of any depth if the stack is large."""
    threading.stack_size(64 << 20)
    try:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(ir.Module.parse, text, ir.Context.current).result()
    finally:
        threading.stack_size(0)


def timed(work: Callable[[], object]) -> float:
    gc.disable()
    start = time.process_time()
    work()
    seconds = time.process_time() - start
    gc.enable()
    return seconds


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", PASSES)
def test_passes(name, shape):
    before, pipeline = PASSES[name]
    build, size = SHAPES[shape]
    text = cache(build)

    def run(n: int) -> float:
        with new_context():
            module = parsed(text(n))
            if before:
                hlotag.run_passes(module, before, verify=False)
            return timed(partial(hlotag.run_passes, module, pipeline, verify=False))

    assert least_growth(run, size, 2 * size) < LINEAR


@pytest.mark.parametrize("shape", SHAPES)
def test_numbering(shape):
    connection.ensure()
    build, size = SHAPES[shape]
    text = cache(build)

    def run(n: int) -> float:
        with new_context():
            module = parsed(text(n))
            return timed(lambda: _core.number_operations(module, "0", every=False))

    assert least_growth(run, size) < LINEAR


@pytest.mark.parametrize("step", ["restore", "measure"])
@pytest.mark.parametrize(("shape", "size"), [("chain", 4_000), ("calls", 100), ("keys", 2_000)])
def test_hlo_pass(step, shape, size):
    """Of calls, few: XLA's importer recurses into them."""
    modules = {}
    for n in (size, 4 * size):
        with new_context():
            module = parse_module(SHAPES[shape][0](n).replace("@f0(", "@main("))
            hlotag.run_passes(module, "hlotag-resolve,hlotag-finalize", verify=False)
            program = Origins(module).program
            data = module_to_computation(to_bytecode(module), tuple_args=False).as_serialized_hlo_module_proto()
            modules[n] = program, data

    def run(n: int) -> float:
        program, data = modules[n]
        if step == "measure":
            return timed(lambda: _core.Module(data).measure())
        rules = Rules(program.entries(), ("*",))
        return timed(lambda: program.restore(data, rules, keeps_numbers=False))

    assert least_growth(run, size) < LINEAR


@pytest.mark.parametrize("pattern", ["*{a}*{b}*", "{a}{b}{c}*", "*?" * 20 + "{a}"])
def test_patterns_of_scopes(pattern):
    def run(n: int) -> float:
        sine = f'%1 = stablehlo.sine %0 : {TYPE} loc("jit(f)/{"ab" * n}/sin")'
        text = f"func.func @main(%0: {TYPE}) -> {TYPE} {{\n{sine}\nreturn %1 : {TYPE}\n}}"
        with new_context():
            module = parsed(text)
            rules = f'hlotag-attach{{rules=[{{scope = "{pattern}", attrs = {{k = "v"}}}}]}}'
            return timed(partial(hlotag.run_passes, module, rules, verify=False))

    assert least_growth(run, 5_000, 10_000) < LINEAR


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if "constant" not in name])
def test_all_passes_on_hostile_modules(name):
    """MLIR's own verifier is quadratic in the depth of regions."""

    def run(n: int) -> float:
        return hostile.run(name, n, verify=False)["seconds"]

    assert least_growth(run, max(1, CASES[name].short // 2)) < LINEAR
