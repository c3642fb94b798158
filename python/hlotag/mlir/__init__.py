# SPDX-License-Identifier: Apache-2.0
"""The MLIR inside jaxlib: its functions are found, and tried in a child process if need be."""
