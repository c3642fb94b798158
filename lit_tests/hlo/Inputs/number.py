# SPDX-License-Identifier: Apache-2.0
"""Prints a module whose operations have numbers in their names, as the HLO pass gives it to XLA, and what it knows of each.

Of an operation: its number, what computes its operands (`_`: an argument), and the number of the first with an equal value.
"""

import sys
from pathlib import Path

from hlotag import _core
from hlotag.mlir import connection
from hlotag.mlir.modules import new_context, parse_module

connection.ensure()
with new_context():
    module = parse_module(Path(sys.argv[1]).read_text())
    program = _core.number_operations(module, "t", every="--every" in sys.argv)
    print(module.operation.get_asm(enable_debug_info=True, use_local_scope=True))
first: dict[int, int] = {}
for number in range(len(program)):
    name, _, operands, _, value = program[number]
    taken = ", ".join("_" if operand is None else str(operand) for operand in operands)
    print(f"{number} = {name}({taken})" + (f" is {first[value]}" if value in first else ""))
    first.setdefault(value, number)
print("results:", *("_" if number is None else number for number in program.results()))
