# SPDX-License-Identifier: Apache-2.0
"""Turns hlotag on by environment variables, for programs that are not yours to edit.

JAX imports the modules of the namespace `jax_plugins` and calls their `initialize` when it starts its backends, which it does
before the first lowering. No backend is registered here. What the variables mean is said in `hlotag.environment`.
"""

from __future__ import annotations

import os

VARIABLES = ("HLOTAG_ENABLE", "HLOTAG_RULES", "HLOTAG_PIPELINE", "HLOTAG_ON_ERROR", "HLOTAG_DUMP_TO")


def initialize() -> None:
    """Does what the variables say; without any of them nothing is imported."""
    if any(os.environ.get(name) for name in VARIABLES):
        from hlotag import environment

        environment.start(os.environ)
