# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s | FileCheck %s
"""One jitted function behind three calls, one of them tagged: the others stay clean."""

import jax
import jax.numpy as jnp

import hlotag


@jax.jit
def inner(x):
    return jnp.sin(x) * 2


def program(x):
    return inner(inner(inner(x)))


text = jax.jit(program).lower(jnp.ones(4)).as_text()
call = "call @inner(%0)"
assert text.count(call) == 1
tagged = text.replace(call, call + ' {mhlo.frontend_attributes = {k = "v"}}')
print(hlotag.run_passes(tagged, "hlotag-propagate-calls,hlotag-verify"))

# CHECK-LABEL: func.func public @main
# CHECK: call @inner(%arg0)
# CHECK: call @inner_0(%0) {mhlo.frontend_attributes = {k = "v"}}
# CHECK: call @inner(%1)
# CHECK-LABEL: func.func private @inner(
# CHECK-NOT: k = "v"
# CHECK-LABEL: func.func private @inner_0(
# CHECK: stablehlo.sine {{.*}}k = "v"
# CHECK: stablehlo.multiply {{.*}}k = "v"
