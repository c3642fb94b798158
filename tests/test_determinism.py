# SPDX-License-Identifier: Apache-2.0
"""The passes give the same bytes in every process: under other hash seeds, other addresses, and other numbers of threads."""

from concurrent.futures import ThreadPoolExecutor

import jax
import pytest

import hlotag
from hlotag.lowering.staging import without_passes
from hlotag.passes.rules import Rule, attach
from programs import PROGRAMS

pytestmark = pytest.mark.slow

PROCESSES = 20

# All passes that change something. The rules tag by what has an order: kinds, scopes, phases, keys.
RULES = [
    *[Rule({"g": 1, "d": 2}, op="dot_general"), Rule({"h": 1, "g": 3}, scope="*", op="t*")],
    *[Rule({"fuse": "a"}, op="multiply", phase="forward"), Rule({"fuse": "b"}, op="add", phase="backward")],
    *[Rule({"f": 4}, function="_inner*"), Rule({"none": 1}, op="no_such_op")],
]
PIPELINE = (
    f"hlotag-resolve,{attach(RULES)},hlotag-propagate-autodiff,hlotag-propagate-regions,hlotag-propagate-calls,hlotag-verify"
)

# Each process runs `pipeline` in `threads` threads at once, on modules and contexts of their own, and prints what all agree on.
CHILD = """
import hashlib
from concurrent.futures import ThreadPoolExecutor
from hlotag.mlir import connection
from hlotag.mlir.modules import new_context, parse_module, to_bytecode
from hlotag.passes.pipeline import pipeline_text, run_and_report

source = open("module.mlirbc", "rb").read()
pipeline = pipeline_text(pipeline)
connection.ensure()

def run(_):
    with new_context() as context:
        context.enable_multithreading(multithreaded)
        module = parse_module(source)
        result = run_and_report(module, pipeline, debug_origins=True)
        assert result.ok, [str(d) for d in result.diagnostics]
        reports = "\\n".join(str(d) for d in result.diagnostics)
        return hashlib.sha256(to_bytecode(module) + reports.encode()).hexdigest(), result.num_changes

with ThreadPoolExecutor(threads) as pool:
    print(*sorted({f"{digest} {changes}" for digest, changes in pool.map(run, range(threads))}), sep="\\n")
"""


@pytest.mark.parametrize("name", ["transformer", "inner_jit"])
def test_twenty_processes_give_the_same_bytes(name, tmp_path, run_python):
    function, arguments = PROGRAMS[name]
    with without_passes():
        module = jax.jit(jax.grad(function)).lower(*arguments).compiler_ir()
    (tmp_path / "module.mlirbc").write_bytes(hlotag.mlir.modules.to_bytecode(module))

    def run(number):
        given = f"{PIPELINE!r}, {1 + number % 3}, {number % 2 == 0}"
        return run_python(f"pipeline, threads, multithreaded = {given}\n{CHILD}", PYTHONHASHSEED=str(number * 7919))

    with ThreadPoolExecutor(2) as pool:
        (line,) = {process.stdout.strip() for process in pool.map(run, range(PROCESSES))}
    assert int(line.split()[1]) > 30, "the pipeline has something to do"
