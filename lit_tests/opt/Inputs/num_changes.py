# SPDX-License-Identifier: Apache-2.0
"""Runs pipelines on a module, one after the other; prints whether each succeeded, and how often it changed the module."""

import sys
from pathlib import Path

from hlotag import _core
from hlotag.mlir import connection
from hlotag.mlir.modules import new_context, parse_module
from hlotag.passes import syntax

connection.ensure()
with new_context():
    module = parse_module(Path(sys.argv[1]).read_text())
    for pipeline in sys.argv[2:]:
        result = _core.run(module, [(element.name, element.options or {}) for element in syntax.parse(pipeline)])
        print(f"{pipeline}: {result.ok}, {result.num_changes}")
