# SPDX-License-Identifier: Apache-2.0
"""The MLIR inside jaxlib: its functions are found, tried in a child process, and cached."""
