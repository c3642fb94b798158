// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --hlotag-propagate-autodiff --split-input-file | FileCheck %s
// A second run finds nothing to do.
// RUN: hlotag-opt %s --hlotag-propagate-autodiff --hlotag-propagate-autodiff --split-input-file | FileCheck %s

// The gradient of `tanh(x @ w)`, as JAX writes it, given the cotangent %g. Only the product is tagged.

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %g: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8x8xf32>) {
  %one = stablehlo.constant dense<1.0> : tensor<4x8xf32>
  // CHECK: stablehlo.dot_general {{.*}}mhlo.frontend_attributes = {k = "v"}
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {mhlo.frontend_attributes = {k = "v"}} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc(#dot)
  // CHECK-NEXT: stablehlo.tanh %{{[0-9]+}} : tensor
  %1 = stablehlo.tanh %0 : tensor<4x8xf32> loc(#tanh)
  %2 = stablehlo.subtract %one, %1 : tensor<4x8xf32> loc(#residual)
  // The other equation's operations stay as they are: tanh has no tag.
  // CHECK: stablehlo.add %{{[0-9]+}}, %{{[0-9]+}} : tensor
  %3 = stablehlo.multiply %g, %2 : tensor<4x8xf32> loc(#ttanh)
  %4 = stablehlo.multiply %3, %1 : tensor<4x8xf32> loc(#ttanh)
  %5 = stablehlo.add %3, %4 : tensor<4x8xf32> loc(#tadd)
  // CHECK-NEXT: stablehlo.dot_general {{.*}}mhlo.frontend_attributes = {k = "v"}
  %6 = stablehlo.dot_general %5, %x, contracting_dims = [0] x [0] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32> loc(#tdot)
  // A key that is there keeps its value; a constant is no derivative.
  // CHECK-NEXT: stablehlo.transpose {{.*}}mhlo.frontend_attributes = {k = "own"}
  %7 = stablehlo.transpose %6, dims = [1, 0] {mhlo.frontend_attributes = {k = "own"}} : (tensor<8x8xf32>) -> tensor<8x8xf32> loc(#ttranspose)
  // CHECK-NEXT: return
  return %1, %7 : tensor<4x8xf32>, tensor<8x8xf32>
}

#frame1 = loc("f"("model.py":3:11 to :16))
#frame2 = loc("f"("model.py":3:2 to :17))
#dot = loc("jit(f)/jvp(layer)/dot_general"(#frame1))
#tanh = loc("jit(f)/jvp(layer)/tanh"(#frame2))
#residual = loc("jit(f)/jvp(layer)/sub"(#frame2))
#ttanh = loc("jit(f)/transpose(jvp(layer))/mul"(#frame2))
#tadd = loc("jit(f)/transpose(jvp(layer))/add_any"(#frame2))
#tdot = loc("jit(f)/transpose(jvp(layer))/dot_general"(#frame1))
#ttranspose = loc("jit(f)/transpose(jvp(layer))/transpose"(#frame1))

// -----

// The line's products do not agree.
// CHECK-LABEL: func.func @unknown
func.func @unknown(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %g: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {mhlo.frontend_attributes = {k = "v"}} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc(#dot)
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] {mhlo.frontend_attributes = {k = "w"}} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc(#dot)
  // CHECK: stablehlo.dot_general %arg2, %arg1, contracting_dims = [1] x [1] : (
  %2 = stablehlo.dot_general %g, %w, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc(#tdot)
  return %1, %2 : tensor<4x8xf32>, tensor<4x8xf32>
}

#frame1 = loc("f"("model.py":3:11 to :16))
#frame2 = loc("f"("model.py":3:2 to :17))
#dot = loc("jit(f)/jvp(layer)/dot_general"(#frame1))
#tanh = loc("jit(f)/jvp(layer)/tanh"(#frame2))
#residual = loc("jit(f)/jvp(layer)/sub"(#frame2))
#ttanh = loc("jit(f)/transpose(jvp(layer))/mul"(#frame2))
#tadd = loc("jit(f)/transpose(jvp(layer))/add_any"(#frame2))
#tdot = loc("jit(f)/transpose(jvp(layer))/dot_general"(#frame1))
#ttranspose = loc("jit(f)/transpose(jvp(layer))/transpose"(#frame1))

// -----

// What `jax.checkpoint` computes again has the entries of its first run; the terminator computes nothing.
// CHECK-LABEL: func.func @recomputed
func.func @recomputed(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.exponential %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc(#exp)
  // CHECK: stablehlo.exponential
  // CHECK: stablehlo.exponential {{.*}}mhlo.frontend_attributes = {k = "v"}
  %1 = stablehlo.exponential %x : tensor<4xf32> loc(#again)
  // CHECK-NEXT: return %
  return %0, %1 : tensor<4xf32>, tensor<4xf32> loc(#again)
}

#frame = loc("f"("model.py":3:11 to :16))
#exp = loc("jit(f)/jvp(layer)/exp"(#frame))
#again = loc("jit(f)/transpose(jvp(layer))/rematted_computation/exp"(#frame))
