# SPDX-License-Identifier: Apache-2.0
"""Passes: pipelines, rules, passes written in Python, and modules inside JAX's own objects."""
