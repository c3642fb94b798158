# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s | FileCheck %s
"""JAX tags the operation that owns an equation's result; the pass finds what it was computed from."""

import jax
import jax.numpy as jnp
from jax.experimental.xla_metadata import set_xla_metadata

import hlotag


def softmax(x):
    with set_xla_metadata(k="v"):
        y = jax.nn.softmax(x)
    return y * 2


module = jax.jit(softmax).lower(jnp.ones((4, 8))).compiler_ir()
print(hlotag.run_passes(module, "hlotag-complete-lowering,hlotag-propagate-regions,hlotag-verify"))

# CHECK-LABEL: func.func public @main
# CHECK: stablehlo.constant {mhlo.frontend_attributes = {k = "v"}} dense<0xFF800000>
# CHECK: stablehlo.reduce
# CHECK: stablehlo.maximum {{.*}}k = "v"
# CHECK: stablehlo.broadcast_in_dim {{.*}}k = "v"
# CHECK: stablehlo.maximum {{.*}}k = "v"
# CHECK-COUNT-2: stablehlo.broadcast_in_dim {{.*}}k = "v"
# CHECK: stablehlo.subtract {{.*}}k = "v"
# CHECK: stablehlo.exponential {{.*}}k = "v"
# CHECK: stablehlo.divide {{.*}}k = "v"
# CHECK-NOT: k = "v"
# CHECK: stablehlo.multiply
# CHECK-NOT: k = "v"
