# SPDX-License-Identifier: Apache-2.0
"""Turns hlotag on by environment variables, for programs that are not yours to edit.

JAX imports the modules of the namespace `jax_plugins` and calls their `initialize` when it starts its backends, which it does
before the first lowering. No backend is registered here. What the variables mean is said in `hlotag.lowering.environment`.
"""

from __future__ import annotations

import os

# Read where they are needed. All others, misspelt ones among them, are for `environment.start`.
_READ_LATER = {"HLOTAG_REPRODUCER_DIR"}


def initialize() -> None:
    """Does what the variables say; without any of them nothing is imported."""
    if any(name.startswith("HLOTAG_") and value and name not in _READ_LATER for name, value in os.environ.items()):
        from hlotag.lowering import environment

        environment.start(os.environ)
