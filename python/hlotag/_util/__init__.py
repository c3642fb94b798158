# SPDX-License-Identifier: Apache-2.0
"""Helpers of several rooms, which need neither JAX nor MLIR."""
