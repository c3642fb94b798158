# SPDX-License-Identifier: Apache-2.0
"""Which helpers do several rooms need? They need neither JAX nor MLIR."""
