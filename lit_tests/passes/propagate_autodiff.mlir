// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --hlotag-propagate-autodiff --split-input-file | FileCheck %s --implicit-check-not=frontend_attributes
// A second run finds nothing to do.
// RUN: hlotag-opt %s --hlotag-propagate-autodiff --hlotag-propagate-autodiff --split-input-file | FileCheck %s --implicit-check-not=frontend_attributes

// The gradient of `tanh(x @ w)`, as JAX writes it, given the cotangent %g. Only the product is tagged.

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[ARG0:.*]]: tensor<4x8xf32>, %[[ARG1:.*]]: tensor<8x8xf32>, %[[ARG2:.*]]: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8x8xf32>) {
func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %g: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8x8xf32>) {
  // CHECK-NEXT: %[[CST:.*]] = stablehlo.constant dense<1.000000e+00> : tensor<4x8xf32>
  %one = stablehlo.constant dense<1.0> : tensor<4x8xf32>
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.dot_general %[[ARG0]], %[[ARG1]], contracting_dims = [1] x [0] {mhlo.frontend_attributes = {k = "v"}} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {mhlo.frontend_attributes = {k = "v"}} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc(#dot)
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.tanh %[[V0]] : tensor<4x8xf32>
  %1 = stablehlo.tanh %0 : tensor<4x8xf32> loc(#tanh)
  // CHECK-NEXT: %[[V2:.*]] = stablehlo.subtract %[[CST]], %[[V1]] : tensor<4x8xf32>
  %2 = stablehlo.subtract %one, %1 : tensor<4x8xf32> loc(#residual)
  // The other equation's operations stay as they are: tanh has no tag.
  // CHECK-NEXT: %[[V3:.*]] = stablehlo.multiply %[[ARG2]], %[[V2]] : tensor<4x8xf32>
  %3 = stablehlo.multiply %g, %2 : tensor<4x8xf32> loc(#ttanh)
  // CHECK-NEXT: %[[V4:.*]] = stablehlo.multiply %[[V3]], %[[V1]] : tensor<4x8xf32>
  %4 = stablehlo.multiply %3, %1 : tensor<4x8xf32> loc(#ttanh)
  // CHECK-NEXT: %[[V5:.*]] = stablehlo.add %[[V3]], %[[V4]] : tensor<4x8xf32>
  %5 = stablehlo.add %3, %4 : tensor<4x8xf32> loc(#tadd)
  // CHECK-NEXT: %[[V6:.*]] = stablehlo.dot_general %[[V5]], %[[ARG0]], contracting_dims = [0] x [0] {mhlo.frontend_attributes = {k = "v"}} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %6 = stablehlo.dot_general %5, %x, contracting_dims = [0] x [0] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32> loc(#tdot)
  // A key that is there keeps its value; a constant is no derivative.
  // CHECK-NEXT: %[[V7:.*]] = stablehlo.transpose %[[V6]], dims = [1, 0] {mhlo.frontend_attributes = {k = "own"}} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %7 = stablehlo.transpose %6, dims = [1, 0] {mhlo.frontend_attributes = {k = "own"}} : (tensor<8x8xf32>) -> tensor<8x8xf32> loc(#ttranspose)
  // CHECK-NEXT: return %[[V1]], %[[V7]] : tensor<4x8xf32>, tensor<8x8xf32>
  return %1, %7 : tensor<4x8xf32>, tensor<8x8xf32>
// CHECK-NEXT: }
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
// CHECK-LABEL: func.func @unknown(
// CHECK-SAME: %[[ARG0:.*]]: tensor<4x8xf32>, %[[ARG1:.*]]: tensor<8x8xf32>, %[[ARG2:.*]]: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
func.func @unknown(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %g: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.dot_general %[[ARG0]], %[[ARG1]], contracting_dims = [1] x [0] {mhlo.frontend_attributes = {k = "v"}} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {mhlo.frontend_attributes = {k = "v"}} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc(#dot)
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.dot_general %[[V0]], %[[ARG1]], contracting_dims = [1] x [0] {mhlo.frontend_attributes = {k = "w"}} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] {mhlo.frontend_attributes = {k = "w"}} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc(#dot)
  // CHECK-NEXT: %[[V2:.*]] = stablehlo.dot_general %[[ARG2]], %[[ARG1]], contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %2 = stablehlo.dot_general %g, %w, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc(#tdot)
  // CHECK-NEXT: return %[[V1]], %[[V2]] : tensor<4x8xf32>, tensor<4x8xf32>
  return %1, %2 : tensor<4x8xf32>, tensor<4x8xf32>
// CHECK-NEXT: }
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
// CHECK-LABEL: func.func @recomputed(
// CHECK-SAME: %[[ARG0:.*]]: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
func.func @recomputed(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.exponential %[[ARG0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32>
  %0 = stablehlo.exponential %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc(#exp)
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.exponential %[[ARG0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32>
  %1 = stablehlo.exponential %x : tensor<4xf32> loc(#again)
  // CHECK-NEXT: return %[[V0]], %[[V1]] : tensor<4xf32>, tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32> loc(#again)
// CHECK-NEXT: }
}

#frame = loc("f"("model.py":3:11 to :16))
#exp = loc("jit(f)/jvp(layer)/exp"(#frame))
#again = loc("jit(f)/transpose(jvp(layer))/rematted_computation/exp"(#frame))
