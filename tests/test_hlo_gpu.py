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

PROGRAM = """
import jax, jax.numpy as jnp, numpy as np
import hlotag
from hlotag.hlo.module import of_executable

assert jax.default_backend() == "gpu"
x, w = np.ones((64, 128), np.float32), np.ones((128, 256), np.float32)

def f(x, w):
    with hlotag.tagged({TAGS}):
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
products = [
    i.attributes for m in of_executable(executable) for i in m.instructions()
    if i.opcode in ("dot", "custom-call") and i.op_name.endswith("dot_general")
]
assert products, texts[-1]
print(products)
assert all(EXPECTED(i) for i in products), products
"""


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ('{"k": "v"}', 'lambda i: i.get("k") == "v"'),
        ('{"_xla_stream_annotation": "1"}', "lambda i: True"),
        ('{"_scheduling_group_id": "1"}', "lambda i: True"),
    ],
)
def test_products_have_their_tags(tags, expected, run_python):
    run_python(PROGRAM.replace("TAGS", tags).replace("EXPECTED", f"({expected})"), JAX_PLATFORMS="cuda")


def test_backward_products_are_marked_and_forward_ones_are_not(run_python):
    code = PROGRAM.replace("hlotag.tagged({TAGS})", 'hlotag.tagged({"k": "v"}, grad={"grad_x": "true"})')
    expected = '(lambda i: (i.get("grad_x") == "true") != (i.get("k") == "v"))'
    run_python(code.replace("EXPECTED", expected), JAX_PLATFORMS="cuda")


PROFILED = """
import jax, jax.numpy as jnp, hlotag
hlotag.enable()
def loss(weights, x):
    for number, w in enumerate(weights):
        with hlotag.tagged({"layer": number}):
            x = jax.nn.gelu(x @ w)
    return (x**2).mean()
weights, x = [jnp.full((1024, 1024), 0.01)] * 3, jnp.ones((2048, 1024))
profile = hlotag.profile(jax.grad(loss), weights, x, steps=5)
print(profile)
places = {(row.value, row.phase) for row in profile.rows if row.key == "layer" and row.seconds}
assert {(str(n), phase) for n in range(3) for phase in ("forward", "backward")} <= places, places
for row in profile.rest:
    assert row.value not in ("command buffers", "without a name") or row.share < 0.1, row
assert profile.in_operations > 0.3 * profile.total_seconds
"""


def test_a_profile_has_the_time_of_each_layer(run_python):
    run_python(PROFILED, JAX_PLATFORMS="cuda")
