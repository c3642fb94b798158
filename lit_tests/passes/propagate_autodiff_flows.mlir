// SPDX-License-Identifier: Apache-2.0
// A residual is followed through calls: it is no forward operation of its line.
// RUN: hlotag-opt %s --hlotag-propagate-autodiff | FileCheck %s --implicit-check-not=frontend_attributes

// CHECK-LABEL: func.func public @main(
// CHECK-SAME: %[[ARG0:.*]]: tensor<4xf32>, %[[ARG1:.*]]: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
// CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = stablehlo.cosine %[[ARG0]] {mhlo.frontend_attributes = {k = "w"}} : tensor<4xf32>
// CHECK-NEXT: %[[V2:.*]] = call @pass(%[[V1]]) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V3:.*]] = stablehlo.multiply %[[ARG1]], %[[V2]] {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32>
// CHECK-NEXT: return %[[V0]], %[[V3]] : tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT: }
func.func public @main(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc(#sin)
  // Only the backward pass of this line uses it.
  %1 = stablehlo.cosine %x {mhlo.frontend_attributes = {k = "w"}} : tensor<4xf32> loc(#cos)
  %2 = func.call @pass(%1) : (tensor<4xf32>) -> tensor<4xf32> loc(#other)
  %3 = stablehlo.multiply %g, %2 : tensor<4xf32> loc(#mul)
  return %0, %3 : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func private @pass(
// CHECK-SAME: %[[ARG0:.*]]: tensor<4xf32>) -> tensor<4xf32> {
func.func private @pass(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: return %[[ARG0]] : tensor<4xf32>
  return %x : tensor<4xf32>
// CHECK-NEXT: }
}

#frame = loc("f"("model.py":3:11 to :16))
#elsewhere = loc("f"("model.py":9:11 to :16))
#sin = loc("jit(f)/jvp()/sin"(#frame))
#cos = loc("jit(f)/jvp()/cos"(#frame))
#other = loc("jit(f)/jvp(jit(pass))"(#elsewhere))
#mul = loc("jit(f)/transpose(jvp())/mul"(#frame))
