# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s | FileCheck %s
"""Whether any operation has entries that are wanted: each dictionary is looked at once, until one is."""

from hlotag import _core
from hlotag.mlir import connection
from hlotag.mlir.modules import new_context, parse_module

MODULE = """
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x : tensor<f32>
  %1 = stablehlo.cosine %0 {mhlo.frontend_attributes = {k = "one"}} : tensor<f32>
  %2 = stablehlo.tanh %1 {mhlo.frontend_attributes = {k = "one"}} : tensor<f32>
  %3 = stablehlo.abs %2 {mhlo.frontend_attributes = {k = "two"}} : tensor<f32>
  return %3 : tensor<f32>
}
"""


def ask(wanted: str) -> None:
    """Prints whether an operation has a value, and the values that were looked at."""
    seen: list[str] = []

    def is_wanted(entries: dict[str, str]) -> bool:
        seen.append(entries["k"])
        return seen[-1] == wanted

    print(f"{wanted}: {_core.any_entries(parse_module(MODULE), is_wanted)}, seen: {seen}")


connection.ensure()
with new_context():
    for value in ("one", "two", "three"):
        ask(value)

# CHECK: one: True, seen: ['one']
# CHECK-NEXT: two: True, seen: ['one', 'two']
# CHECK-NEXT: three: False, seen: ['one', 'two']
