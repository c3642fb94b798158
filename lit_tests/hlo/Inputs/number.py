# SPDX-License-Identifier: Apache-2.0
"""Prints a module whose operations have numbers in their names, as the HLO stage gives it to XLA."""

import sys
from pathlib import Path

from hlotag import _core
from hlotag.mlir import connection
from hlotag.mlir.modules import new_context, parse_module

connection.ensure()
with new_context():
    module = parse_module(Path(sys.argv[1]).read_text())
    _core.number_operations(module, "t", every="--every" in sys.argv)
    print(module.operation.get_asm(enable_debug_info=True, use_local_scope=True))
