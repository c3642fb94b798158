// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --hlotag-propagate-autodiff --split-input-file | FileCheck %s --implicit-check-not=frontend_attributes 

// CHECK-LABEL: func.func @derived(
// CHECK-SAME: %[[ARG0:.*]]: tensor<4xf32>, %[[ARG1:.*]]: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
func.func @derived(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {hlotag.derived = {a = "2"}, mhlo.frontend_attributes = {a = "1", m = "3"}} : tensor<4xf32>
  %0 = stablehlo.sine %x {hlotag.derived = {a = "2"}, mhlo.frontend_attributes = {a = "1", m = "3"}} : tensor<4xf32> loc(#sin)
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.cosine %[[ARG0]] : tensor<4xf32>
  %1 = stablehlo.cosine %x : tensor<4xf32> loc(#cos)
  // CHECK-NEXT: %[[V2:.*]] = stablehlo.multiply %[[ARG1]], %[[V1]] {mhlo.frontend_attributes = {a = "2", m = "3"}} : tensor<4xf32>
  %2 = stablehlo.multiply %g, %1 : tensor<4xf32> loc(#tsin)
  // CHECK-NEXT: return %[[V0]], %[[V2]] : tensor<4xf32>, tensor<4xf32>
  return %0, %2 : tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT: }
}

#frame = loc("f"("model.py":3:11 to :16))
#sin = loc("jit(f)/jvp()/sin"(#frame))
#cos = loc("jit(f)/jvp()/cos"(#frame))
#tsin = loc("jit(f)/transpose(jvp())/mul"(#frame))

// -----

// CHECK-LABEL: func.func @dropped(
// CHECK-SAME: %[[ARG0:.*]]: tensor<4xf32>, %[[ARG1:.*]]: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
func.func @dropped(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {hlotag.derived = {a = ["hlotag.unset"]}, mhlo.frontend_attributes = {a = "1"}} : tensor<4xf32>
  %0 = stablehlo.sine %x {hlotag.derived = {a = ["hlotag.unset"]}, mhlo.frontend_attributes = {a = "1"}} : tensor<4xf32> loc(#sin)
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.cosine %[[ARG0]] : tensor<4xf32>
  %1 = stablehlo.cosine %x : tensor<4xf32> loc(#cos)
  // CHECK-NEXT: %[[V2:.*]] = stablehlo.multiply %[[ARG1]], %[[V1]] {mhlo.frontend_attributes = {a = ["hlotag.unset"]}} : tensor<4xf32>
  %2 = stablehlo.multiply %g, %1 : tensor<4xf32> loc(#tsin)
  // CHECK-NEXT: return %[[V0]], %[[V2]] : tensor<4xf32>, tensor<4xf32>
  return %0, %2 : tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT: }
}

#frame = loc("f"("model.py":3:11 to :16))
#sin = loc("jit(f)/jvp()/sin"(#frame))
#cos = loc("jit(f)/jvp()/cos"(#frame))
#tsin = loc("jit(f)/transpose(jvp())/mul"(#frame))
