# SPDX-License-Identifier: Apache-2.0
"""The stage: its hooks in JAX's lowering and compilation, dumps and reproducers."""
