# SPDX-License-Identifier: Apache-2.0
"""Passes: pipelines, rules, passes written in Python, and modules inside JAX's own objects."""

from hlotag.passes.pipeline import DEFAULT_PIPELINE
from hlotag.passes.syntax import PassInfo, PassOption

__all__ = ["DEFAULT_PIPELINE", "PassInfo", "PassOption"]
