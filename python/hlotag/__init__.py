# SPDX-License-Identifier: Apache-2.0
"""Tags on the operations of a JAX program that survive autodiff, batching, control flow and XLA.

`hlotag.enable()` is enough for programs that already use `jax.experimental.xla_metadata`.
"""

import lazy_loader

from hlotag._util.version import VERSION as __version__  # noqa: F401

# The names of `__init__.pyi`, each imported on first use: `hlotag-opt` needs the passes and not JAX.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
