# SPDX-License-Identifier: Apache-2.0
"""What an audit costs: of a large HLO module, beside reading it; of a program, beside compiling it; and its page in a browser.

python benchmarks/audit.py [--instructions 100000] [--operations 50000] [--layers 4]
"""

from __future__ import annotations

import argparse
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import jax
from train_module import trace

import hlotag
from audits import made_up
from browser import browser
from hlotag import _compat
from hlotag.audits import dumps
from hlotag.hlo import HloModule


def timed(run):
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result


def large_module(instructions: int) -> bytes:
    """HLO with tags on two of three instructions; a fifth of them is equal to another or without effect."""
    shape = "f32[64,64]{1,0}"
    lines = ["HloModule large", "", "ENTRY main {", f"  p0 = {shape} parameter(0)", f"  p1 = {shape} parameter(1)"]
    opcodes = ("add", "multiply", "subtract", "maximum")
    for n in range(instructions - 3):
        left, right = (f"i{n - 1}" if n else "p0"), (f"i{n - 7}" if n > 7 else "p1")
        tag = f', frontend_attributes={{block="{n % 40}"}}' if n % 3 else ""
        metadata = f', metadata={{op_name="jit(f)/layer_{n % 40}/{opcodes[n % 4]}.{n}"}}'
        lines.append(f"  i{n} = {shape} {opcodes[n % 4]}({left}, {right}){tag}{metadata}")
    lines += [f"  ROOT r = {shape} negate(i{instructions - 4})", "}"]
    return _compat.runtime.hlo_from_text("\n".join(lines))


def viewed(data: bytes) -> HloModule:
    """A module whose instructions are made, as an audit asks for all of them."""
    module = HloModule(data)
    for _ in module.instructions():
        pass
    return module


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--instructions", type=int, default=100_000)
    arguments.add_argument("--operations", type=int, default=50_000)
    arguments.add_argument("--layers", type=int, default=4)
    options = arguments.parse_args()
    data = large_module(options.instructions)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    reading, first = timed(lambda: viewed(data))
    last = viewed(data)
    busy = time.process_time()
    finding, audit = timed(lambda: dumps.of_modules(first, last))
    busy = time.process_time() - busy
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"HLO module of {options.instructions} instructions, {len(audit.tags)} tags")
    print(f"  read {reading:.2f} s, audited {finding:.2f} s ({finding / reading:.1f} times as long), {busy:.2f} s of a processor")
    print(f"  memory at most {used / 1024:.0f} MB, {(used - before) / 1024:.0f} MB of it for this")

    with hlotag.stage():
        compiling, _ = timed(lambda: trace(options.layers).lower().compile())
        jax.clear_caches()
        auditing, _ = timed(lambda: hlotag.audit(trace(options.layers).lower()))
    print(
        f"transformer of {options.layers} layers: compiled {compiling:.2f} s, audited {auditing:.2f} s "
        f"({auditing / compiling:.2f} times)"
    )

    made = made_up(options.operations)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "audit.html"
        writing, _ = timed(lambda: made.to_html(path))
        print(f"page of {options.operations} operations: written {writing:.2f} s, {path.stat().st_size / 1e6:.1f} MB", end="")
        if not (shutil.which("chromium") and shutil.which("chromedriver")):
            print("; no Chromium to open it")
            return
        with browser(Path(folder) / "profile") as driver:
            driver.get("about:blank")
            opening, _ = timed(lambda: driver.get(f"file://{path}"))
            script = "requestAnimationFrame(() => requestAnimationFrame(arguments[0]))"
            painting, _ = timed(lambda: driver.execute_async_script(script))
            print(f", opened and painted {opening + painting:.2f} s in headless Chromium")


if __name__ == "__main__":
    main()
