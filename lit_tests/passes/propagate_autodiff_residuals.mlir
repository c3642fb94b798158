// SPDX-License-Identifier: Apache-2.0
// Residuals are no candidates, and an expression that may be dead code has none.
// RUN: hlotag-opt %s --hlotag-propagate-autodiff --split-input-file | FileCheck %s --implicit-check-not=frontend_attributes

// The cosine is the residual of the sine: only the derivative uses it.
// CHECK-LABEL: func.func @residual(
// CHECK-SAME: %[[ARG0:.*]]: tensor<4xf32>, %[[ARG1:.*]]: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
func.func @residual(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32>
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc(#sin)
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.cosine %[[ARG0]] : tensor<4xf32>
  %1 = stablehlo.cosine %x : tensor<4xf32> loc(#cos)
  // CHECK-NEXT: %[[V2:.*]] = stablehlo.multiply %[[ARG1]], %[[V1]] {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32>
  %2 = stablehlo.multiply %g, %1 : tensor<4xf32> loc(#tmul)
  // CHECK-NEXT: return %[[V0]], %[[V2]] : tensor<4xf32>, tensor<4xf32>
  return %0, %2 : tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT: }
}

#frame = loc("f"("model.py":3:11 to :16))
#sin = loc("jit(f)/jvp()/sin"(#frame))
#cos = loc("jit(f)/jvp()/cos"(#frame))
#logistic = loc("jit(f)/jvp()/logistic"(#frame))
#tmul = loc("jit(f)/transpose(jvp())/mul"(#frame))

// -----

// The program uses both: the product may stem from either.
// CHECK-LABEL: func.func @both(
// CHECK-SAME: %[[ARG0:.*]]: tensor<4xf32>, %[[ARG1:.*]]: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
func.func @both(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32>
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc(#sin)
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.cosine %[[ARG0]] : tensor<4xf32>
  %1 = stablehlo.cosine %x : tensor<4xf32> loc(#cos)
  // CHECK-NEXT: %[[V2:.*]] = stablehlo.multiply %[[ARG1]], %[[V1]] : tensor<4xf32>
  %2 = stablehlo.multiply %g, %1 : tensor<4xf32> loc(#tmul)
  // CHECK-NEXT: return %[[V0]], %[[V1]], %[[V2]] : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT: }
}

#frame = loc("f"("model.py":3:11 to :16))
#sin = loc("jit(f)/jvp()/sin"(#frame))
#cos = loc("jit(f)/jvp()/cos"(#frame))
#logistic = loc("jit(f)/jvp()/logistic"(#frame))
#tmul = loc("jit(f)/transpose(jvp())/mul"(#frame))

// -----

// The gradient of `x * sigmoid(x)`: the product is dead code, and the line's products are not the logistic's alone.
// CHECK-LABEL: func.func @dead(
// CHECK-SAME: %[[ARG0:.*]]: tensor<4xf32>, %[[ARG1:.*]]: tensor<4xf32>) -> tensor<4xf32> {
func.func @dead(%x: tensor<4xf32>, %g: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.logistic %[[ARG0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32>
  %0 = stablehlo.logistic %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc(#logistic)
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.multiply %[[ARG1]], %[[V0]] : tensor<4xf32>
  %1 = stablehlo.multiply %g, %0 : tensor<4xf32> loc(#tmul)
  // CHECK-NEXT: return %[[V1]] : tensor<4xf32>
  return %1 : tensor<4xf32>
// CHECK-NEXT: }
}

#frame = loc("f"("model.py":3:11 to :16))
#sin = loc("jit(f)/jvp()/sin"(#frame))
#cos = loc("jit(f)/jvp()/cos"(#frame))
#logistic = loc("jit(f)/jvp()/logistic"(#frame))
#tmul = loc("jit(f)/transpose(jvp())/mul"(#frame))

// -----

// A loop stacks the residual: what moves slices is at the loop's line.
// CHECK-LABEL: func.func @stacked(
// CHECK-SAME: %[[ARG0:.*]]: tensor<4xf32>, %[[ARG1:.*]]: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
func.func @stacked(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: %[[C:.*]] = stablehlo.constant dense<0> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.broadcast_in_dim %[[ARG0]], dims = [1] : (tensor<4xf32>) -> tensor<2x4xf32>
  %stack = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<4xf32>) -> tensor<2x4xf32> loc(#stacks)
  // CHECK-NEXT: %[[V1:.*]]:3 = stablehlo.while(%[[ITERARG:.*]] = %[[C]], %[[ITERARG_0:.*]] = %[[ARG0]], %[[ITERARG_1:.*]] = %[[V0]]) : tensor<i32>, tensor<4xf32>, tensor<2x4xf32>
  %0:3 = stablehlo.while(%i = %zero, %y = %x, %s = %stack) : tensor<i32>, tensor<4xf32>, tensor<2x4xf32>
    // CHECK-NEXT: cond {
    cond {
      // CHECK-NEXT: %[[V5:.*]] = stablehlo.compare LT, %[[ITERARG]], %[[C]] : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %p = stablehlo.compare LT, %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1> loc(#loop)
      // CHECK-NEXT: stablehlo.return %[[V5]] : tensor<i1>
      stablehlo.return %p : tensor<i1>
    // CHECK-NEXT: } do {
    } do {
      // CHECK-NEXT: %[[V5]] = stablehlo.sine %[[ITERARG_0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32>
      %1 = stablehlo.sine %y {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc(#sin)
      // CHECK-NEXT: %[[V6:.*]] = stablehlo.cosine %[[ITERARG_0]] : tensor<4xf32>
      %2 = stablehlo.cosine %y : tensor<4xf32> loc(#cos)
      // CHECK-NEXT: %[[V7:.*]] = stablehlo.reshape %[[V6]] : (tensor<4xf32>) -> tensor<1x4xf32>
      %3 = stablehlo.reshape %2 : (tensor<4xf32>) -> tensor<1x4xf32> loc(#stacks)
      // CHECK-NEXT: %[[V8:.*]] = stablehlo.dynamic_update_slice %[[ITERARG_1]], %[[V7]], %[[ITERARG]], %[[C]] : (tensor<2x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x4xf32>
      %4 = stablehlo.dynamic_update_slice %s, %3, %i, %zero : (tensor<2x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x4xf32> loc(#stacks)
      // CHECK-NEXT: stablehlo.return %[[ITERARG]], %[[V5]], %[[V8]] : tensor<i32>, tensor<4xf32>, tensor<2x4xf32>
      stablehlo.return %i, %1, %4 : tensor<i32>, tensor<4xf32>, tensor<2x4xf32>
    // CHECK-NEXT: }
    } loc(#loop)
  // CHECK-NEXT: %[[V2:.*]] = stablehlo.dynamic_slice %[[V1]]#2, %[[C]], %[[C]], sizes = [1, 4] : (tensor<2x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
  %5 = stablehlo.dynamic_slice %0#2, %zero, %zero, sizes = [1, 4] : (tensor<2x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32> loc(#stacks)
  // CHECK-NEXT: %[[V3:.*]] = stablehlo.reshape %[[V2]] : (tensor<1x4xf32>) -> tensor<4xf32>
  %6 = stablehlo.reshape %5 : (tensor<1x4xf32>) -> tensor<4xf32> loc(#stacks)
  // CHECK-NEXT: %[[V4:.*]] = stablehlo.multiply %[[ARG1]], %[[V3]] {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32>
  %7 = stablehlo.multiply %g, %6 : tensor<4xf32> loc(#tmul)
  // CHECK-NEXT: return %[[V1]]#1, %[[V4]] : tensor<4xf32>, tensor<4xf32>
  return %0#1, %7 : tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT: }
}

#frame = loc("f"("model.py":3:11 to :16))
#line = loc("f"("model.py":2:1 to :16))
#loop = loc("jit(f)/jvp()/while"(#line))
#stacks = loc("jit(f)/jvp()/while/body/dynamic_update_slice"(#line))
#sin = loc("jit(f)/jvp()/while/body/sin"(#frame))
#cos = loc("jit(f)/jvp()/while/body/cos"(#frame))
#tmul = loc("jit(f)/transpose(jvp())/while/body/mul"(#frame))
