// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --hlotag-propagate-autodiff | FileCheck %s --implicit-check-not=frontend_attributes

// What a function stems from is found through its calls: what says `transpose` is the caller.

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[ARG0:.*]]: tensor<4x8xf32>, %[[ARG1:.*]]: tensor<8x8xf32>, %[[ARG2:.*]]: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>) {
// CHECK-NEXT: %[[V0:.*]] = call @inner(%[[ARG0]], %[[ARG1]]) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT: %[[V1:.*]]:2 = call @inner_0(%[[ARG0]], %[[ARG1]], %[[ARG2]]) : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>) -> (tensor<8x8xf32>, tensor<4x8xf32>)
// CHECK-NEXT: return %[[V0]], %[[V1]]#0, %[[V1]]#1 : tensor<4x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>
// CHECK-NEXT: }
func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %g: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>) {
  %0 = func.call @inner(%x, %w) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc(#call)
  %1:2 = func.call @inner_0(%x, %w, %g) : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>) -> (tensor<8x8xf32>, tensor<4x8xf32>) loc(#tcall)
  return %0, %1#0, %1#1 : tensor<4x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>
}

// CHECK-LABEL: func.func private @inner(
// CHECK-SAME: %[[ARG0:.*]]: tensor<4x8xf32>, %[[ARG1:.*]]: tensor<8x8xf32>) -> tensor<4x8xf32> {
func.func private @inner(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.dot_general %[[ARG0]], %[[ARG1]], contracting_dims = [1] x [0] {mhlo.frontend_attributes = {k = "v"}} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {mhlo.frontend_attributes = {k = "v"}} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc(#dot)
  // CHECK-NEXT: return %[[V0]] : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
// CHECK-NEXT: }
}

// CHECK-LABEL: func.func private @inner_0(
// CHECK-SAME: %[[ARG0:.*]]: tensor<4x8xf32>, %[[ARG1:.*]]: tensor<8x8xf32>, %[[ARG2:.*]]: tensor<4x8xf32>) -> (tensor<8x8xf32>, tensor<4x8xf32>) {
func.func private @inner_0(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %g: tensor<4x8xf32>) -> (tensor<8x8xf32>, tensor<4x8xf32>) {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.dot_general %[[ARG2]], %[[ARG0]], contracting_dims = [0] x [0] {mhlo.frontend_attributes = {k = "v"}} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %0 = stablehlo.dot_general %g, %x, contracting_dims = [0] x [0] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32> loc(#dot)
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.dot_general %[[ARG2]], %[[ARG1]], contracting_dims = [1] x [1] {mhlo.frontend_attributes = {k = "v"}} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = stablehlo.dot_general %g, %w, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc(#dot)
  // CHECK-NEXT: return %[[V0]], %[[V1]] : tensor<8x8xf32>, tensor<4x8xf32>
  return %0, %1 : tensor<8x8xf32>, tensor<4x8xf32>
// CHECK-NEXT: }
}

#frame1 = loc("inner"("model.py":3:11 to :16))
#frame2 = loc("f"("model.py":9:11 to :16))
#dot = loc("dot_general"(#frame1))
#call = loc("jit(f)/jvp(jit(inner))"(#frame2))
#tcall = loc("jit(f)/transpose(jvp(jit(inner)))"(#frame2))
