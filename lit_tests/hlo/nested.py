# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s > %t.hlo
# RUN: %hlo restore %t.hlo | FileCheck %s --match-full-lines
"""Computations within each other take neither stack, nor time that doubles with the depth.

Each one but the first calls the previous one twice, so that 2^DEPTH paths lead to the first.
"""

PROGRAM = """
func.func @main(%x: tensor<64xf32>) {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {k = "v"}} : tensor<64xf32> loc("f/sin")
  return
}"""


def write_case(name: str, depth: int, call: str) -> None:
    """Prints a program and a module; `{}` in `call` stands for a computation."""
    print(PROGRAM)
    print(f"HloModule {name}")
    print('level0 {\n  p0 = f32[64] parameter(0)\n  ROOT s = f32[64] sine(p0), metadata={op_name="#f/sin"}\n}')
    for n in range(1, depth + 1):
        called = call.format(f"level{n - 1}")
        print(f"level{n} {{\n  p{n} = f32[64] parameter(0)\n  a{n} = f32[64] {called.replace('OPERAND', f'p{n}')}")
        print(f'  ROOT b{n} = f32[64] {called.replace("OPERAND", f"a{n}")}, metadata={{op_name="#f/sin"}}\n}}')
    last = call.format(f"level{depth}").replace("OPERAND", "x")
    print(f"ENTRY main {{\n  x = f32[64] parameter(0)\n  ROOT f = f32[64] {last}\n}}")


write_case("fusions", 20000, "fusion(OPERAND), kind=kLoop, calls={}")
print("\n// -----\n")
write_case("calls", 64, "call(OPERAND), to_apply={}")

# CHECK-LABEL: HloModule fusions
# CHECK-NEXT: s: f/sin
# CHECK: f: {helper=true k=v}
# CHECK-LABEL: HloModule calls
# CHECK-NEXT: s: {k=v} f/sin
# CHECK: b64: {k=v} f/sin
