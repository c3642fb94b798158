// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --hlotag-propagate-autodiff | FileCheck %s
// A second run finds nothing to do.
// RUN: hlotag-opt %s --hlotag-propagate-autodiff --hlotag-propagate-autodiff | FileCheck %s

// The gradient of `sum(tanh(x @ w))`, as JAX writes it. Only the product is tagged.

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // CHECK: stablehlo.dot_general {{.*}}mhlo.frontend_attributes = {k = "v"}
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {mhlo.frontend_attributes = {k = "v"}} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc(#dot)
  // CHECK-NEXT: stablehlo.tanh %{{[0-9]+}} : tensor
  %1 = stablehlo.tanh %0 : tensor<4x8xf32> loc(#tanh)
  %2 = stablehlo.multiply %1, %1 : tensor<4x8xf32> loc(#ttanh)
  // The other equation's operations stay as they are.
  // CHECK: stablehlo.add %{{[0-9]+}}, %{{[0-9]+}} : tensor
  %3 = stablehlo.add %2, %2 : tensor<4x8xf32> loc(#tadd)
  // CHECK-NEXT: stablehlo.dot_general {{.*}}mhlo.frontend_attributes = {k = "v"}
  %4 = stablehlo.dot_general %3, %x, contracting_dims = [0] x [0] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32> loc(#tdot)
  // A key that is there keeps its value; a constant is no derivative.
  // CHECK-NEXT: stablehlo.transpose {{.*}}mhlo.frontend_attributes = {k = "own"}
  %5 = stablehlo.transpose %4, dims = [1, 0] {mhlo.frontend_attributes = {k = "own"}} : (tensor<8x8xf32>) -> tensor<8x8xf32> loc(#ttranspose)
  // CHECK-NEXT: return
  return %5 : tensor<8x8xf32>
}

#frame1 = loc("f"("model.py":3:11 to :16))
#frame2 = loc("f"("model.py":3:2 to :17))
#dot = loc("jit(f)/jvp(layer)/dot_general"(#frame1))
#tanh = loc("jit(f)/jvp(layer)/tanh"(#frame2))
#ttanh = loc("jit(f)/transpose(jvp(layer))/mul"(#frame2))
#tadd = loc("jit(f)/transpose(jvp(layer))/add_any"(#frame2))
#tdot = loc("jit(f)/transpose(jvp(layer))/dot_general"(#frame1))
#ttranspose = loc("jit(f)/transpose(jvp(layer))/transpose"(#frame1))
