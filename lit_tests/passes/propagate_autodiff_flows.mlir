// SPDX-License-Identifier: Apache-2.0
// A residual that passes through more calls than are followed counts as used outside of its line, with a remark. The
// backward operation then has two candidates with different entries, and gets none.
// RUN: hlotag-opt %s --hlotag-propagate-autodiff 2>&1 | FileCheck %s --check-prefixes=CHECK,ALL
// RUN: hlotag-opt %s --hlotag-propagate-autodiff=max-flows=2 2>&1 | FileCheck %s --check-prefixes=CHECK,FEW
// ALL-NOT: remark:
// FEW: remark: the values of 1 operations pass through more than 2 calls and loops

// CHECK-LABEL: func.func public @main
func.func public @main(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc(#sin)
  // Only the backward pass of this line uses it.
  %1 = stablehlo.cosine %x {mhlo.frontend_attributes = {k = "w"}} : tensor<4xf32> loc(#cos)
  %2 = func.call @pass(%1) : (tensor<4xf32>) -> tensor<4xf32> loc(#other)
  // ALL: stablehlo.multiply {{.*}}k = "v"
  // FEW: stablehlo.multiply %arg1, %{{[0-9]+}} : tensor
  %3 = stablehlo.multiply %g, %2 : tensor<4xf32> loc(#mul)
  return %0, %3 : tensor<4xf32>, tensor<4xf32>
}
func.func private @pass(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

#frame = loc("f"("model.py":3:11 to :16))
#elsewhere = loc("f"("model.py":9:11 to :16))
#sin = loc("jit(f)/jvp()/sin"(#frame))
#cos = loc("jit(f)/jvp()/cos"(#frame))
#other = loc("jit(f)/jvp(jit(pass))"(#elsewhere))
#mul = loc("jit(f)/transpose(jvp())/mul"(#frame))
