# SPDX-License-Identifier: Apache-2.0
"""What limits each figure: instructions an operation, counted by valgrind's callgrind, and where they are spent.

    python benchmarks/counts.py [--layers 8]

Counts do not depend on what else the machine does. Columns: instructions an operation; how many times those of the bare walk; and
their shares by kind of function, each instruction in the function that it belongs to:
  malloc       memory: malloc, free and their kin
  own          hlotag's code (for the bare walk: the walk's)
  C API        the functions of MLIR's C API that it calls
  verifier     MLIR's checks, and what they ask of types
  unique       attributes, locations and identifiers are made, which MLIR keeps once each: hashing and looking up
  walk         operations, blocks, regions, operands and results are visited
  other        the rest: copies of memory, strings and containers of the standard library, ...
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

# By the file that a function is in, and by its name; the first that fits.
KINDS = {
    "malloc": r"malloc|free|operator new|operator delete|calloc|realloc|_int_|unlink_chunk|BumpPtr",
    "own": r"/_core\.|/bare_walk\.",
    "C API": r": mlir[A-Z]\w+$",
    "verifier": r"[vV]erif|OpTrait|ShapedType|InterfaceMap|quant::|mlir::hlo::|inferType|getElementType|Dominance",
    "unique": r"Uniquer|StringAttr|DictionaryAttr|ArrayAttr|LocAttr|Loc\b|Identifier|hash|StringMap|NamedAttr|setAttr"
    r"|AttrDictionary|Storage",
    "walk": r"Operation::|Block::|Region::|ilist|walk|Value::|OpResult|OpOperand|TypeRange",
}
CASES = ("bare walk", "default pipeline", "default pipeline, no tags", "hlotag-resolve", "verifier", "sdy-lift-inlined-meshes")

SWITCH = """\
#include <valgrind/callgrind.h>
extern "C" __attribute__((visibility("default"))) void start() { CALLGRIND_START_INSTRUMENTATION; CALLGRIND_ZERO_STATS; }
extern "C" __attribute__((visibility("default"))) void pause() { CALLGRIND_TOGGLE_COLLECT; CALLGRIND_DUMP_STATS; }
extern "C" __attribute__((visibility("default"))) void resume() { CALLGRIND_TOGGLE_COLLECT; }
extern "C" __attribute__((visibility("default"))) void stop() { CALLGRIND_DUMP_STATS; CALLGRIND_STOP_INSTRUMENTATION; }
"""


def has_valgrind() -> bool:
    return shutil.which("valgrind") is not None and Path("/usr/include/valgrind/callgrind.h").exists()


def under_valgrind(folder: Path, script: str, *arguments: str, **options: Any) -> subprocess.CompletedProcess:
    """Runs a script that is given the library of `SWITCH` besides, as `--count`; counts are written to `folder`/out.*"""
    switch, output = folder / "switch.so", folder / "out"
    subprocess.run(["c++", "-O1", "-shared", "-fPIC", "-x", "c++", "-", "-o", switch], input=SWITCH, text=True, check=True)
    flags = ("--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={output}", "--vex-guest-chase=yes")
    command = ["valgrind", *flags, sys.executable, script, *arguments, "--count", str(switch)]
    return subprocess.run(command, text=True, check=False, **options)


def count(layers: int, switch: str) -> None:
    """In the child process: each case once for its caches, and once with instructions counted."""
    import passes
    from jaxlib.mlir import ir, passmanager

    import hlotag
    from hlotag.mlir import connection

    connection.ensure()
    library = ctypes.CDLL(switch)
    with tempfile.TemporaryDirectory() as folder:
        walk = passes.build_bare_walk(Path(folder))
        plain, marked = passes.inputs(layers)
        lift = passmanager.PassManager.parse("builtin.module(sdy-lift-inlined-meshes)", plain.context)

        def passes_of(text: str):
            return lambda module: hlotag.run_passes(module, text, verify=False)

        runs = {
            "bare walk": (plain, walk),
            "default pipeline": (marked, passes_of(hlotag.passes.DEFAULT_PIPELINE)),
            "default pipeline, no tags": (plain, passes_of(hlotag.passes.DEFAULT_PIPELINE)),
            "hlotag-resolve": (marked, passes_of("hlotag-resolve")),
            "verifier": (plain, lambda module: module.operation.verify()),
            "sdy-lift-inlined-meshes": (plain, lambda module: lift.run(module.operation)),
        }
        assert tuple(runs) == CASES
        for source, run in runs.values():
            code = hlotag.mlir.modules.to_bytecode(source)
            run(ir.Module.parse(code, source.context))
            module = ir.Module.parse(code, source.context)
            library.start()
            run(module)
            library.stop()
        print("operations", walk(ir.Module.parse(hlotag.mlir.modules.to_bytecode(plain), plain.context)))


def kind_of(function: str) -> str:
    return next((kind for kind, pattern in KINDS.items() if re.search(pattern, function)), "other")


def full(names: dict[str, str], text: str) -> str:
    """A name that callgrind writes out once, as `(number) name`, and then as `(number)`."""
    number, _, name = text.partition(" ")
    return names.setdefault(number, name)


def spent(path: Path) -> Counter[str]:
    """Instructions by function, from what callgrind wrote: costs of calls belong to who is called, and are left out."""
    names: dict[str, str] = {}
    files: dict[str, str] = {}
    costs: Counter[str] = Counter()
    function, file, is_call = "", "", False
    for line in path.read_text(errors="replace").splitlines():
        name = line.partition("=")[2]
        if line.startswith("ob="):
            file = full(files, name)
        elif line.startswith("cob="):
            full(files, name)
        elif line.startswith("fn="):
            function = f"{file}: {full(names, name)}"
        elif line.startswith("cfn="):
            full(names, name)
        elif line.startswith("calls="):
            is_call = True
        elif line and line[0] in "0123456789+-*":
            if not is_call:
                costs[function] += int(line.split()[1])
            is_call = False
    return costs


def measure(layers: int) -> tuple[int, list[Counter[str]]]:
    """The number of operations, and the instructions by function of each case."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"JAX_PLATFORMS": "cpu", "PYTHONMALLOC": "malloc"}
        done = under_valgrind(Path(folder), __file__, "--layers", str(layers), env=environment, capture_output=True)
        found = re.search(r"operations (\d+)", done.stdout)
        if done.returncode or found is None:
            raise SystemExit(f"callgrind ended with {done.returncode}:\n{done.stderr[-3000:]}")
        dumps = sorted(Path(folder).glob("out.*"), key=lambda path: int(path.suffix[1:]))
        return int(found[1]), [spent(path) for path in dumps[: len(CASES)]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--top", type=int, default=0, help="list as many functions of each case")
    parser.add_argument("--count", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.count:
        count(options.layers, options.count)
        return
    if not has_valgrind():
        print("no valgrind here (apt-get install valgrind)")
        return
    operations, cases = measure(options.layers)
    kinds = (*KINDS, "other")
    print(f"{options.layers}-layer training step, {operations} operations")
    print(f"{'':28}{'instr/op':>10}{'x walk':>8}" + "".join(f"{kind:>10}" for kind in kinds))
    floor = cases[0].total()
    for name, costs in zip(CASES, cases, strict=True):
        total, shares = costs.total(), Counter[str]()
        for function, cost in costs.items():
            shares[kind_of(function)] += cost
        cells = "".join(f"{shares[kind] / total:>10.0%}" for kind in kinds)
        print(f"{name:28}{total / operations:>10,.0f}{total / floor:>8.2f}{cells}")
        for function, cost in costs.most_common(options.top):
            print(f"    {cost / total:>6.1%} {kind_of(function):12} {function.rpartition('/')[2][:110]}")


if __name__ == "__main__":
    main()
