# SPDX-License-Identifier: Apache-2.0
"""What happens when JAX lowers and compiles? The stage, its hooks in JAX, dumps and reproducers."""
