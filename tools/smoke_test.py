# SPDX-License-Identifier: Apache-2.0
"""The least that an installed hlotag must do: tags of a program that is differentiated are there, and the command works."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp

import hlotag


def loss(x: jax.Array) -> jax.Array:
    with hlotag.tagged({"block": "first"}):
        y = jnp.tanh(x @ x)
    return y.sum()


x = jnp.ones((4, 4))
plain = jax.jit(jax.grad(loss))(x)
with hlotag.stage():
    lowered = jax.jit(jax.grad(loss)).lower(x)
    assert lowered.as_text().count('block = "first"') >= 4, lowered.as_text()
    assert (jax.jit(jax.grad(loss))(x) == plain).all()

command = Path(sysconfig.get_path("scripts")) / "hlotag-opt"
done = subprocess.run([command, "--hlotag-strip"], input=lowered.as_text(), capture_output=True, text=True, check=True)
assert "block" not in done.stdout
assert "site-packages" in str(hlotag.__file__), hlotag.__file__
print(f"hlotag {hlotag.__version__} on Python {sys.version.split()[0]}, jax {jax.__version__}: ok")
