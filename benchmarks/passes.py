# SPDX-License-Identifier: Apache-2.0
"""The cost of the passes, beside a floor and beside other ways of doing such work, in one run on one module.

    python benchmarks/passes.py [--layers 48] [--repeat 5] [--processes 5]
    python benchmarks/passes.py --scale [--only resolve]   # every pass on 10,000 and on 1,000,000 operations: scale.py

Rows:
  bare walk            one C++ walk through the same table that sets one attribute on every StableHLO operation: the floor
  default pipeline     what `hlotag.enable()` runs, on the module with its marks, with and without MLIR's verifier
  each pass            the passes of the default pipeline alone
  verifier             `Operation.verify()` of the whole module; the stage verifies only what its passes may make invalid
  sdy-lift-inlined-meshes   a pass that JAX itself runs on every module, in the same pass manager, with the verifier
  Python               the walk of the floor through jaxlib's Python bindings
  text                 the floor's work for a pass in another process: print, parse, walk, print, parse
  mlir-opt             the default pipeline in a process of mlir-opt, as its plugin: print, start, parse, run, print, parse

Where a process's memory lies makes any of these up to twice as slow as in the next process: there are several, and figures are
medians of theirs, of ratios too.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import jax
import scale
from jaxlib.mlir import ir, passmanager
from train_module import lower

import hlotag
from hlotag import _core
from hlotag._compat.bindings import capsule
from hlotag.lowering.staging import under
from hlotag.mlir import connection
from hlotag.tagging.state import Stage, unique

HERE = pathlib.Path(__file__).parent
PLUGIN = HERE.parent / "build" / "dev" / "cpp" / "plugin" / "libhlotag_mlir_opt.so"  # tools/mlir_opt.sh builds it


def build_bare_walk(folder: pathlib.Path):
    """Compiles the floor against hlotag's headers; returns operation -> number of operations."""
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise SystemExit("benchmarks/passes.py needs a C++ compiler (c++, g++ or clang++) for the bare walk")
    library = folder / "bare_walk.so"
    source, include = HERE / "bare_walk.cpp", HERE.parent / "cpp" / "include"
    subprocess.run(
        [compiler, "-O2", "-std=c++17", "-shared", "-fPIC", f"-I{include}", str(source), "-o", str(library)], check=True
    )
    function = ctypes.CDLL(str(library)).bare_walk
    function.restype, function.argtypes = ctypes.c_long, [ctypes.c_void_p, ctypes.c_void_p]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = _core.table_address()
    return lambda module: function(table, pointer(capsule(module), b"jaxlib.mlir.ir.Operation._CAPIPtr"))


def python_walk(module: ir.Module) -> None:
    value = ir.StringAttr.get("v", module.context)

    def visit(op):
        if op.name.startswith("stablehlo."):
            op.attributes["hlotag_bench"] = value
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)


def through_text(module: ir.Module) -> None:
    there = ir.Module.parse(module.operation.get_asm(enable_debug_info=True, print_generic_op_form=True), module.context)  # pyright: ignore[reportCallIssue]
    python_walk(there)
    ir.Module.parse(there.operation.get_asm(enable_debug_info=True, print_generic_op_form=True), module.context)


def measure(run, fresh, repeat: int) -> float:
    """Median seconds of `run` on a new copy of the module each time."""
    times = []
    for _ in range(repeat):
        module = fresh()
        start = time.perf_counter()
        run(module)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def mlir_opt() -> list[str] | None:
    """The command that runs the default pipeline in a process of its own; None if there is no mlir-opt, or no plugin for it."""
    program = shutil.which("mlir-opt-22") or shutil.which("mlir-opt", path="/usr/lib/llvm-22/bin")
    if program is None or not PLUGIN.exists():
        return None
    flags = ("--allow-unregistered-dialect", "--mlir-print-op-generic", "--mlir-print-debuginfo")
    return [program, f"--load-pass-plugin={PLUGIN}", f"--pass-pipeline=builtin.module({hlotag.passes.DEFAULT_PIPELINE})", *flags]


def through_process(command: list[str], module: ir.Module) -> None:
    text = module.operation.get_asm(enable_debug_info=True, print_generic_op_form=True)
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)  # pyright: ignore[reportCallIssue]
    ir.Module.parse(done.stdout, module.context)


def inputs(layers: int) -> tuple[ir.Module, ir.Module]:
    """The lowered training step, as JAX alone lowers it, and with marks and the table of tags, before any pass."""
    with under(unique(Stage("", ""))):
        marked = lower(layers).compiler_ir()
    with hlotag.stage(None):
        return lower(layers).compiler_ir(), marked


def rows(layers: int, repeat: int):
    connection.ensure()
    plain, marked = inputs(layers)

    def copies(module):
        code = hlotag.mlir.modules.to_bytecode(module)
        return lambda: ir.Module.parse(code, module.context)

    tagged = hlotag.run_passes(copies(marked)(), hlotag.passes.DEFAULT_PIPELINE)

    def passes(text, verify):
        return lambda module: hlotag.run_passes(module, text, verify=verify)

    with tempfile.TemporaryDirectory() as folder:
        bare_walk = build_bare_walk(pathlib.Path(folder))
        operations = bare_walk(copies(plain)())
        lift = passmanager.PassManager.parse("builtin.module(sdy-lift-inlined-meshes)", plain.context)
        yield "operations", operations
        yield "bare walk", measure(bare_walk, copies(plain), repeat)
        yield "default pipeline", measure(passes(hlotag.passes.DEFAULT_PIPELINE, False), copies(marked), repeat)
        yield "default pipeline + verifier", measure(passes(hlotag.passes.DEFAULT_PIPELINE, True), copies(marked), repeat)
        yield "default pipeline, no tags", measure(passes(hlotag.passes.DEFAULT_PIPELINE, False), copies(plain), repeat)
        for text in hlotag.passes.DEFAULT_PIPELINE.split(","):
            module = marked if "resolve" in text else tagged
            yield f"  {text}", measure(passes(text, False), copies(module), repeat)
        yield "verifier", measure(lambda module: module.operation.verify(), copies(plain), repeat)
        yield "sdy-lift-inlined-meshes + verifier", measure(lambda module: lift.run(module.operation), copies(plain), repeat)
        yield "Python", measure(python_walk, copies(plain), repeat)
        few = max(3, repeat // 5)
        yield "text", measure(through_text, copies(plain), few)
        if command := mlir_opt():
            yield "mlir-opt", measure(lambda module: through_process(command, module), copies(marked), few)


def in_processes(options: argparse.Namespace) -> list[dict[str, float]]:
    command = [sys.executable, __file__, "--child", "--layers", str(options.layers), "--repeat", str(options.repeat)]
    runs = (subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(options.processes))
    return [json.loads(run.stdout.splitlines()[-1]) for run in runs]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--layers", type=int, default=48)
    arguments.add_argument("--repeat", type=int, default=5)
    arguments.add_argument("--processes", type=int, default=5)
    arguments.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments.add_argument("--scale", action="store_true", help="each pass on 10,000 and on 1,000,000 operations")
    arguments.add_argument("--times", type=int, default=100, help="with --scale: how much larger the large module is")
    arguments.add_argument("--only", default="", help="with --scale: passes with this in their name")
    options = arguments.parse_args()
    if options.scale:
        connection.ensure()
        scale.report(scale.LAYERS, options.times, options.only)
        return
    if options.child:
        print(json.dumps(dict(rows(options.layers, options.repeat))))
        return
    start = time.perf_counter()
    runs = in_processes(options)
    operations = int(runs[0]["operations"])
    versions = f"jax {jax.__version__}, Python {platform.python_version()}"
    print(f"{options.layers}-layer transformer training step, {operations} operations; {versions}")
    print(f"{'':44}{'ms':>10}{'ns/op':>9}{'x bare walk':>13}{'least':>8}{'most':>8}")
    for name in list(runs[0])[1:]:
        seconds = statistics.median(run[name] for run in runs)
        ratios = [run[name] / run["bare walk"] for run in runs]
        cells = f"{statistics.median(ratios):>13.2f}{min(ratios):>8.2f}{max(ratios):>8.2f}"
        print(f"{name:44}{seconds * 1e3:>10.2f}{seconds * 1e9 / operations:>9.0f}{cells}")
    print(
        f"\nmedians of {options.processes} processes, {options.repeat} runs in each; {time.perf_counter() - start:.0f} s in all"
    )


if __name__ == "__main__":
    main()
