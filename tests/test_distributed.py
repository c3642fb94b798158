# SPDX-License-Identifier: Apache-2.0
"""Every process makes the same module by itself, in the stage and by all passes: under other hash seeds, addresses and numbers of
threads. The job of tests/job.md runs there."""

from concurrent.futures import ThreadPoolExecutor

import pytest

pytestmark = pytest.mark.slow

# Every kind of thing that has an order: keys of a tag, tags of a program, rules, functions, and sets and dictionaries on the way.
MODULE = """
import os, sys
from concurrent.futures import ThreadPoolExecutor
import jax, jax.numpy as jnp, numpy as np
import hlotag
from hlotag.passes.rules import attach

@jax.jit
def inner(x):
    return jnp.tanh(x) * 2.0

def loss(w, x):
    for n in range(6):
        with jax.named_scope(f"layer{n}"):
            x = hlotag.tag(jnp.sin(x @ w["a"]) * inner(x), {f"k{n % 4}": n, "b": "c", "a": "b"}, grad={"z": n, "y": "x"})
    with hlotag.tagged({"last": True, "first": False}):
        x, _ = jax.lax.scan(lambda x, _: (jnp.cos(x @ w["b"]), None), inner(x), None, length=3)
    return x.sum()

rules = [hlotag.Rule({"r": str(n), "q": "s"}, op=op, scope="layer*") for n, op in enumerate(["sine", "dot_general", "tanh"])]
hlotag.enable(rules=rules)
w = {"a": np.ones((4, 4), np.float32), "b": np.ones((4, 4), np.float32)}
lowered = jax.jit(jax.value_and_grad(loss)).lower(w, np.ones((4, 4), np.float32))
sys.stdout.write(lowered.as_text(debug_info=True))
hlotag.disable()
passes = "hlotag-propagate-autodiff,hlotag-propagate,hlotag-finalize"
untagged = jax.jit(jax.value_and_grad(loss)).lower(w, np.ones((4, 4), np.float32)).as_text(debug_info=True)
with ThreadPoolExecutor(1 + int(os.environ["PYTHONHASHSEED"]) % 3) as pool:
    print(*pool.map(lambda _: hlotag.run_passes(untagged, f"{attach(rules)},{passes}", debug_origins=True), range(3)))
"""


def test_the_module_is_the_same_bytes_whatever_the_hash_seed(run_python):
    with ThreadPoolExecutor(2) as pool:
        texts = list(pool.map(lambda n: run_python(MODULE, PYTHONHASHSEED=str(n * 7919)).stdout, range(9)))
    for tag in ('k3 = "3"', 'z = "5"', 'r = "1"', 'last = "true"'):
        assert tag in texts[0]
    assert len(set(texts)) == 1
