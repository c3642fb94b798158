# SPDX-License-Identifier: Apache-2.0
"""The stage inside XLA's compiler for GPUs, where there is one."""

import importlib.util
from pathlib import Path

import pytest

PLUGINS = ("jax_cuda12_plugin", "jax_cuda13_plugin")

pytestmark = pytest.mark.skipif(
    not Path("/dev/nvidia0").exists() or not any(map(importlib.util.find_spec, PLUGINS)),
    reason="no GPU or no CUDA plugin of JAX here: nothing of what is said about GPUs was tested in this run",
)

PROGRAM = f"""
import sys
sys.path.append({str(Path(__file__).parent)!r})
import jax, jax.numpy as jnp, numpy as np
import hlotag
from hlo_programs import entries_with_fusion

assert jax.default_backend() == "gpu"
x, w = np.ones((64, 128), np.float32), np.ones((128, 256), np.float32)

def f(x, w):
    with hlotag.tagged(TAGS):
        y = jnp.square(x @ w)
    return y.sum()

results, texts = [], []
for hlo in (False, True):
    with hlotag.stage(hlo=hlo):
        executable = jax.jit(jax.grad(f, (0, 1))).lower(x, w).compile()
    results.append(executable(x, w))
    texts.append(executable.as_text())
    assert "\\x01" not in texts[-1] and "\\\\001" not in texts[-1]
for a, b in zip(*results):
    np.testing.assert_array_equal(a, b)
products = [each for opcode in ("dot", "custom-call") for each in entries_with_fusion(executable, opcode)]
assert len(products) >= 3, texts[-1]
assert all(EXPECTED(i) for i in products), products
"""
# XLA takes the fastest way to multiply, which may be another one the next time.
ENVIRONMENT = {"JAX_PLATFORMS": "cuda", "XLA_FLAGS": "--xla_gpu_autotune_level=0"}


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ('{"k": "v"}', 'lambda i: i.get("k") == "v"'),
        ('{"_xla_stream_annotation": "1"}', "lambda i: True"),
        ('{"_scheduling_group_id": "1"}', "lambda i: True"),
        ('{"k": "v"}, grad={"grad_x": "true"}', 'lambda i: (i.get("grad_x") == "true") != (i.get("k") == "v")'),
    ],
)
def test_products_have_their_tags(tags, expected, run_python):
    run_python(PROGRAM.replace("TAGS", tags).replace("EXPECTED", f"({expected})"), **ENVIRONMENT)


BLOCK = """
import jax, jax.numpy as jnp, hlotag
hlotag.enable()
def train(x):
    @jax.jit
    def step(x):
        for layer in range(3):
            with hlotag.tagged({"layer": layer}):
                x = jnp.tanh(x @ x) * 0.01
        return x
    @jax.jit
    def evaluate(x):
        with hlotag.tagged({"layer": 9}):
            return jnp.sin(x @ x)
    for number in range(6):
        x = step(x)
        if number % 2:
            evaluate(x)
with hlotag.profiling() as profiles:
    train(jnp.ones((2048, 2048)))
print(profiles)
runs = {each.name: len(each.steps) for each in profiles.programs}
assert (runs["jit_step"], runs["jit_evaluate"]) == (6, 3), runs
"""


def test_a_block_has_the_runs_of_each_program(run_python):
    run_python(BLOCK, JAX_PLATFORMS="cuda")
