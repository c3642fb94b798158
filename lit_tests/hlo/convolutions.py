# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s > %t.hlo
# RUN: %hlo work %t.hlo | FileCheck %t.hlo --match-full-lines --implicit-check-not='{{.+}}'
"""The work of a convolution is what meets an element, and not padding or a hole. Prints random ones, counted one by one."""

import random

NUM_CONVOLUTIONS = 500
BYTES = 4  # of an element
chosen = random.Random(1)

print("// CHECK-LABEL: HloModule convolutions\nHloModule convolutions\nENTRY main {")
for n in range(NUM_CONVOLUTIONS):
    inputs, outputs, size, stride = (chosen.randint(1, most) for most in (6, 7, 5, 4))
    padding, dilation, base = chosen.randint(0, 3), chosen.randint(1, 3), chosen.randint(1, 6)
    places = (place * dilation + at * stride - padding for place in range(size) for at in range(outputs))
    flops = 2 * sum(place >= 0 and place % base == 0 and place // base < inputs for place in places)
    window = f"{{size={size} stride={stride} pad={padding}_0 lhs_dilate={base} rhs_dilate={dilation}}}"
    print(f"  x{n} = f32[1,{inputs},1] parameter({2 * n})\n  k{n} = f32[{size},1,1] parameter({2 * n + 1})")
    print(f"  // CHECK-NEXT: y{n}: {flops} flops, {BYTES * outputs} bytes, effort {max(flops, outputs)}")
    print(f"  y{n} = f32[1,{outputs},1] convolution(x{n}, k{n}), window={window}, dim_labels=b0f_0io->b0f")
print("}")
