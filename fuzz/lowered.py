# SPDX-License-Identifier: Apache-2.0
"""Mutates modules that JAX lowered, and runs every pass on what is still valid.

    python fuzz/lowered.py SECONDS [SEED]

Attributes are given, taken and spoiled, locations swapped and spoiled, calls redirected, operations copied, removed and moved out
of their regions, functions reordered. Each pass then fails and leaves the module as it was, or leaves a valid module that it does
not change again; and it treats a copy the same. It all happens in child processes, so that a crash is counted and not the end.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
CASES_PER_CHILD = 40
PASSES = (
    "hlotag-resolve",
    'hlotag-attach{rules=\'[{op = "*", scope = "*a*", attrs = {k = "v"}}, {op = "dot_general", attrs = {l = "w"}}]\'}',
    "hlotag-propagate",
    "hlotag-propagate-autodiff",
    "hlotag-propagate-autodiff",
    "hlotag-strip{keys=k*}",
    "hlotag-finalize",
    "hlotag-resolve,hlotag-propagate-autodiff,hlotag-propagate,hlotag-finalize",
)
KEYS = ("k", "l", "MUST_FUSE", "_scheduling_group_id", "inlineable", "hlotag.grad.k", "xla.sdy.sharding", "")
VALUES = ('"v"', '"w"', '"1"', '""', '["hlotag.unset"]', "true", "7 : i32")
NAMES = (
    "jit(f)",
    "jvp(a)",
    "transpose(jvp(a))",
    "while/body",
    "checkpoint",
    "rematted_computation",
    "a",
    "(",
    ")",
    "",
    "\\01hlotag#0\\01",
    "\\01hlotag#7\\01",
    "\\01hlotag#",
    "\\FF",
    "mul",
    "dot_general",
    "add_any",
)
FRONTEND = "mhlo.frontend_attributes"


def seeds(folder: Path) -> None:
    """Writes the modules that JAX makes of the tests' programs."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
    sys.path.insert(0, str(ROOT / "tests"))
    import jax

    from programs import PROGRAMS, TRANSFORMS

    chosen = ("none", "grad", "vmap_grad", "jvp", "grad_checkpoint")
    for name, (function, args) in PROGRAMS.items():
        for transform in chosen:
            try:
                lowered = jax.jit(TRANSFORMS[transform](function)).lower(*args)
            except TypeError:  # forward mode of a custom_vjp
                continue
            (folder / f"{name}-{transform}.mlir").write_text(lowered.as_text(debug_info=True))


def spoil_locations(text: str, rng: random.Random) -> str:
    """Changes names in the table of locations at the end, and which location an operation has."""
    for _ in range(rng.randrange(4)):
        table = list(re.finditer(r'^#loc\d* = loc\("([^"]*)"', text, re.MULTILINE))
        uses = list(re.finditer(r"loc\((#loc\d+)\)$", text, re.MULTILINE))
        if table and rng.random() < 0.6:
            spot = rng.choice(table)
            words = [*spot[1].split("/"), rng.choice(NAMES)]
            rng.shuffle(words)
            text = text[: spot.start(1)] + "/".join(words) + text[spot.end(1) :]
        elif len(uses) > 1:
            spot, other = rng.choice(uses), rng.choice(uses)
            text = text[: spot.start(1)] + other[1] + text[spot.end(1) :]
    return text


def mutate(module: Any, rng: random.Random) -> None:
    """Changes a module in place."""
    from jaxlib.mlir import ir

    def all_operations() -> list[Any]:
        found: list[Any] = []

        def walk(op: Any) -> None:
            for child in (o.operation for region in op.regions for block in region.blocks for o in block.operations):
                found.append(child)
                walk(child)

        walk(module.operation)
        return found

    def entries() -> str:
        return "{" + ", ".join(f'"{key}" = {rng.choice(VALUES)}' for key in rng.sample(KEYS[:-1], rng.randrange(3))) + "}"

    def give(op: Any) -> None:
        op.attributes[FRONTEND] = ir.Attribute.parse(entries() if rng.random() < 0.95 else rng.choice(VALUES))

    def give_in_flight(op: Any) -> None:
        op.attributes["hlotag.derived"] = ir.Attribute.parse(entries())

    def redirect(op: Any) -> None:
        names = [f.operation.attributes["sym_name"] for f in module.body.operations if "sym_name" in f.operation.attributes]
        if op.name == "func.call":
            op.attributes["callee"] = ir.FlatSymbolRefAttr.get(rng.choice(names).value)

    def copy(op: Any) -> None:
        if op.name not in ("func.return", "stablehlo.return", "sdy.return", "func.func"):
            op.clone(ip=ir.InsertionPoint(op))

    def remove(op: Any) -> None:
        if not any(list(result.uses) for result in op.results) and not op.name.endswith("return"):
            op.erase()

    def hoist(op: Any) -> None:
        parent = op.parent.operation if op.parent is not None else None
        if parent is not None and parent.name not in ("builtin.module", "func.func") and not op.name.endswith("return"):
            op.move_before(parent)

    def reorder(op: Any) -> None:
        functions = list(module.body.operations)
        if len(functions) > 1:
            functions[0].operation.move_after(functions[-1].operation)

    table = '[{entries = {k = "v"}}]'
    module.operation.attributes["hlotag.tags"] = ir.Attribute.parse(table)
    changes: tuple[Callable[[Any], None], ...] = (give, give, give, give_in_flight, redirect, copy, remove, hoist, reorder)
    for _ in range(rng.randrange(1, 12)):
        if operations := all_operations():
            rng.choice(changes)(rng.choice(operations))


def check(text: str, pipeline: str) -> str:
    """What is wrong with a pipeline's result on a module; empty if nothing is."""
    from jaxlib.mlir import ir

    from hlotag.mlir.modules import new_context, parse_module
    from hlotag.passes.pipeline import run_and_report

    def full(module: Any) -> str:
        return module.operation.get_asm(enable_debug_info=True)

    with new_context():
        module, other = parse_module(text), parse_module(text)
        before = full(module)
        done = run_and_report(module, pipeline)
        after = full(module)
        if run_and_report(other, pipeline).ok != done.ok or full(other) != after:
            return "a copy is treated otherwise"
        if not done.ok:
            problem = "" if done.diagnostics else "a failure without a reason"
            return "a failure changed the module" if after != before else problem
        try:
            module.operation.verify()
        except ir.MLIRError as error:
            return f"the result is not valid: {error}"
        run_and_report(module, pipeline)
        # A pipeline takes its marks and notes out at the end, and begins without them the next time.
        forgets = "hlotag-finalize" in pipeline or "hlotag.unset" in before
        return "" if full(module) == after or forgets else "running again changes something"


def child(folder: Path, number: int) -> None:
    """Runs a number of cases; says what it did in the file "said"."""
    from jaxlib.mlir import ir

    from hlotag.errors import ParseError
    from hlotag.mlir.connection import ensure
    from hlotag.mlir.modules import new_context, parse_module

    ensure()
    files = sorted(folder.glob("*.mlir"))
    tried = 0
    for case in range(CASES_PER_CHILD):
        rng = random.Random(number * CASES_PER_CHILD + case)
        text = spoil_locations(rng.choice(files).read_text(), rng)
        with new_context():
            try:
                module = parse_module(text)
                mutate(module, rng)
                module.operation.verify()
            except (ParseError, ir.MLIRError):
                continue
            text = module.operation.get_asm(enable_debug_info=True)
        for pipeline in rng.sample(PASSES, 3):
            (folder / "current").write_text(f"// hlotag-opt --pass-pipeline='{pipeline}'\n{text}")
            tried += 1
            if problem := check(text, pipeline):
                (folder / f"wrong-{number}-{case}").write_text(f"// {problem}\n// {pipeline}\n{text}")
    (folder / "said").write_text(str(tried))


def main() -> int:
    if sys.argv[1] == "--child":
        child(Path(sys.argv[2]), int(sys.argv[3]))
        return 0
    end = time.monotonic() + float(sys.argv[1])
    number = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1_000_000)
    kept = ROOT / "build" / "fuzz" / "artifacts" / "lowered"
    kept.mkdir(parents=True, exist_ok=True)
    inputs = crashes = wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(
            [
                sys.executable,
                "-c",
                f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import lowered;"
                f"lowered.seeds(lowered.Path({name!r}))",
            ],
            check=True,
        )
        while time.monotonic() < end:
            number += 1
            (folder / "said").write_text("0")
            done = subprocess.run(
                [sys.executable, __file__, "--child", name, str(number)],
                capture_output=True,
                text=True,
                timeout=1200,
                check=False,
            )
            inputs += int((folder / "said").read_text())
            if done.returncode != 0:
                crashes += 1
                (folder / "current").rename(kept / f"crash-{number}.mlir")
                print(f"crash, exit status {done.returncode}, {kept}/crash-{number}.mlir: {done.stderr[-500:]}", flush=True)
            for file in folder.glob("wrong-*"):
                wrong += 1
                print(file.read_text().splitlines()[0], kept / file.name, flush=True)
                (kept / file.name).write_text(file.read_text())
                file.unlink()
    print(f"{inputs} inputs, {crashes} crashes, {wrong} wrong")
    return 0


if __name__ == "__main__":
    sys.exit(main())
