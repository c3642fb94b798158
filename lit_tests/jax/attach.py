# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s | FileCheck %s
"""Rules find operations by scope and phase, in functions and loops too, where names are relative to the caller."""

import jax
import jax.numpy as jnp

import hlotag
from hlotag.passes.rules import attach


def layer(x, w):
    with jax.named_scope("attention"):
        return jnp.tanh(x @ w)


def loss(w, x):
    with jax.named_scope("decoder"):
        x, _ = jax.lax.scan(lambda x, w: (layer(x, w), None), x, w)
    return x.sum()


rules = [
    hlotag.Rule({"fwd": "1"}, op="dot_general", scope="decoder/*attention", phase="forward"),
    hlotag.Rule({"bwd": "1"}, op="dot_general", scope="attention", phase="backward"),
]
lowered = jax.jit(jax.grad(loss)).lower(jnp.ones((3, 4, 4)), jnp.ones((2, 4)))
module = lowered.compiler_ir()
hlotag.run_passes(module, [attach(rules), "hlotag-finalize"])
print(module)

# CHECK-LABEL: module @jit_loss
# CHECK: stablehlo.dot_general {{.*}}fwd = "1"
# CHECK-COUNT-2: stablehlo.dot_general {{.*}}bwd = "1"
# CHECK-NOT: fwd = "1"
# CHECK-NOT: hlotag.
