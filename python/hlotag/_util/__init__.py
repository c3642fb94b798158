# SPDX-License-Identifier: Apache-2.0
"""Helpers of several rooms that need neither JAX nor MLIR."""
