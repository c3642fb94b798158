# SPDX-License-Identifier: Apache-2.0
"""How do passes run? Pipelines, rules, passes written in Python, plugins, and modules inside JAX's own objects."""
