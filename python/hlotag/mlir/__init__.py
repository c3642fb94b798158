# SPDX-License-Identifier: Apache-2.0
"""How does hlotag call the MLIR inside jaxlib? Finds its functions, tries them in a child process, and caches the result."""
