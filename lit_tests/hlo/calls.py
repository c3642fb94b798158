# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s > %t.mlir
# RUN: %python %S/Inputs/number.py %t.mlir | FileCheck %s
"""What computes a value is known through any number of calls, one in another."""

DEPTH = 200


def write_function(name: str, *operations: str) -> None:
    """Prints a function of a scalar: a chain of operations."""
    print(f"func.func {name}(%0: tensor<f32>) -> tensor<f32> {{")
    for number, operation in enumerate(operations):
        print(f"  %{number + 1} = {operation.format(f'%{number}')}")
    print(f"  return %{len(operations)} : tensor<f32>\n}}")


call = "call @f{}({{}}) : (tensor<f32>) -> tensor<f32>"
write_function("public @main", "stablehlo.sine {} : tensor<f32>", call.format(0))
for depth in range(DEPTH):
    write_function(f"private @f{depth}", call.format(depth + 1))
write_function(f"private @f{DEPTH}", "stablehlo.cosine {} : tensor<f32>")

# CHECK: 1 = stablehlo.sine(_)
# CHECK: 605 = stablehlo.cosine(1)
# CHECK: results: 605
