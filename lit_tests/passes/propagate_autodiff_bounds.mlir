// SPDX-License-Identifier: Apache-2.0
// What malloc gives is filled, so that an index beyond the values of the module is one far beyond.
// RUN: env MALLOC_PERTURB_=85 hlotag-opt %s --hlotag-propagate-autodiff --split-input-file | FileCheck %s --implicit-check-not=frontend_attributes

// A forward function that is only declared has no equations, so nothing is known of what the backward one has.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[ARG0:.*]]: tensor<4xf32>, %[[ARG1:.*]]: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT: %[[V0:.*]] = call @inner(%[[ARG0]], %[[ARG0]]) {mhlo.frontend_attributes = {k = "v"}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = call @inner_0(%[[ARG0]], %[[ARG1]]) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[V1]] : tensor<4xf32>
// CHECK-NEXT: }
func.func @main(%x: tensor<4xf32>, %g: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @inner(%x, %x) {mhlo.frontend_attributes = {k = "v"}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc(#call)
  %1 = func.call @inner_0(%x, %g) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc(#tcall)
  return %1 : tensor<4xf32>
}
// CHECK-LABEL: func.func private @inner_0(
// CHECK-SAME: %[[ARG0:.*]]: tensor<4xf32>, %[[ARG1:.*]]: tensor<4xf32>) -> tensor<4xf32> {
func.func private @inner_0(%x: tensor<4xf32>, %g: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.multiply %[[ARG0]], %[[ARG1]] : tensor<4xf32>
  %0 = stablehlo.multiply %x, %g : tensor<4xf32> loc(#mul)
  // CHECK-NEXT: return %[[V0]] : tensor<4xf32>
  return %0 : tensor<4xf32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @inner(
// CHECK-SAME: tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
func.func private @inner(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>

#frame1 = loc("inner"("model.py":3:11 to :16))
#frame2 = loc("f"("model.py":9:11 to :16))
#mul = loc("mul"(#frame1))
#call = loc("jit(f)/jvp(jit(inner))"(#frame2))
#tcall = loc("jit(f)/transpose(jvp(jit(inner)))"(#frame2))

// -----

// A nested module has functions of its own: that of the same name outside has more arguments.
func.func private @inner(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc("sin")
  return %0 : tensor<4xf32>
}
module @nested {
  // CHECK-LABEL: func.func private @inner(
  // CHECK-SAME: %[[ARG0:.*]]: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32>
  // CHECK-NEXT: return %[[V0]] : tensor<4xf32>
  // CHECK-NEXT: }
  func.func private @inner() -> tensor<4xf32> {
    %0 = stablehlo.constant dense<1.0> : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  // CHECK: module @nested {
  // CHECK-LABEL: func.func private @inner(
  // CHECK-SAME: ) -> tensor<4xf32> {
  // CHECK-NEXT: %[[CST:.*]] = stablehlo.constant dense<1.000000e+00> : tensor<4xf32>
  // CHECK-NEXT: return %[[CST]] : tensor<4xf32>
  // CHECK-NEXT: }
  // CHECK-LABEL: func.func @main(
  // CHECK-SAME: ) -> tensor<4xf32> {
  // CHECK-NEXT: %[[V0:.*]] = call @inner() : () -> tensor<4xf32>
  // CHECK-NEXT: return %[[V0]] : tensor<4xf32>
  // CHECK-NEXT: }
  func.func @main() -> tensor<4xf32> {
    %0 = func.call @inner() : () -> tensor<4xf32> loc("jit(f)/jit(inner)")
    return %0 : tensor<4xf32>
  }
}

// -----

// An operation without operands may have the name of a primitive that takes one.
// CHECK-LABEL: func.func @names(
// CHECK-SAME: %[[ARG0:.*]]: tensor<1x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
func.func @names(%g: tensor<1x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.iota dim = 0 {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32>
  %0 = stablehlo.iota dim = 0 {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc(#forward)
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.reshape %[[ARG0]] : (tensor<1x4xf32>) -> tensor<4xf32>
  %1 = stablehlo.reshape %g : (tensor<1x4xf32>) -> tensor<4xf32> loc(#backward)
  // CHECK-NEXT: return %[[V0]], %[[V1]] : tensor<4xf32>, tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT: }
}

#frame = loc("f"("model.py":3:11 to :16))
#forward = loc("jit(f)/jvp()/broadcast_in_dim"(#frame))
#backward = loc("jit(f)/transpose(jvp())/broadcast_in_dim"(#frame))
