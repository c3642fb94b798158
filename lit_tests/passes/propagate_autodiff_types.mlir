// SPDX-License-Identifier: Apache-2.0
// Values of complex and bounded types have derivatives; integers have none.
// RUN: hlotag-opt %s --hlotag-propagate-autodiff --split-input-file | FileCheck %s --implicit-check-not=frontend_attributes

// CHECK-LABEL: func.func public @complex(
// CHECK-SAME: %[[ARG0:.*]]: tensor<4xcomplex<f32>>, %[[ARG1:.*]]: tensor<4xcomplex<f32>>) -> (tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) {
func.func public @complex(%x: tensor<4xcomplex<f32>>, %g: tensor<4xcomplex<f32>>) -> (tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.tanh %[[ARG0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<4xcomplex<f32>>
  %0 = stablehlo.tanh %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xcomplex<f32>> loc(#tanh)
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.multiply %[[ARG1]], %[[V0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<4xcomplex<f32>>
  %1 = stablehlo.multiply %g, %0 : tensor<4xcomplex<f32>> loc(#mul)
  // CHECK-NEXT: return %[[V0]], %[[V1]] : tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>
  return %0, %1 : tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>
// CHECK-NEXT: }
}
#frame = loc("f"("model.py":3:11 to :16))
#tanh = loc("jit(f)/jvp()/tanh"(#frame))
#mul = loc("jit(f)/transpose(jvp())/mul"(#frame))

// -----

// CHECK-LABEL: func.func public @bounded(
// CHECK-SAME: %[[ARG0:.*]]: tensor<?xf32, #stablehlo.bounds<4>>, %[[ARG1:.*]]: tensor<?xf32, #stablehlo.bounds<4>>) -> (tensor<?xf32, #stablehlo.bounds<4>>, tensor<?xf32, #stablehlo.bounds<4>>) {
func.func public @bounded(%x: tensor<?xf32, #stablehlo.bounds<4>>, %g: tensor<?xf32, #stablehlo.bounds<4>>) -> (tensor<?xf32, #stablehlo.bounds<4>>, tensor<?xf32, #stablehlo.bounds<4>>) {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.tanh %[[ARG0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<?xf32, #stablehlo.bounds<4>>
  %0 = stablehlo.tanh %x {mhlo.frontend_attributes = {k = "v"}} : tensor<?xf32, #stablehlo.bounds<4>> loc(#tanh)
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.multiply %[[ARG1]], %[[V0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<?xf32, #stablehlo.bounds<4>>
  %1 = stablehlo.multiply %g, %0 : tensor<?xf32, #stablehlo.bounds<4>> loc(#mul)
  // CHECK-NEXT: return %[[V0]], %[[V1]] : tensor<?xf32, #stablehlo.bounds<4>>, tensor<?xf32, #stablehlo.bounds<4>>
  return %0, %1 : tensor<?xf32, #stablehlo.bounds<4>>, tensor<?xf32, #stablehlo.bounds<4>>
// CHECK-NEXT: }
}
#frame = loc("f"("model.py":3:11 to :16))
#tanh = loc("jit(f)/jvp()/tanh"(#frame))
#mul = loc("jit(f)/transpose(jvp())/mul"(#frame))

// -----

// CHECK-LABEL: func.func public @integers(
// CHECK-SAME: %[[ARG0:.*]]: tensor<4xi32>, %[[ARG1:.*]]: tensor<4xf32>) -> (tensor<4xi32>, tensor<4xf32>) {
func.func public @integers(%x: tensor<4xi32>, %g: tensor<4xf32>) -> (tensor<4xi32>, tensor<4xf32>) {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.negate %[[ARG0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<4xi32>
  %0 = stablehlo.negate %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xi32> loc(#neg)
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.negate %[[ARG1]] : tensor<4xf32>
  %1 = stablehlo.negate %g : tensor<4xf32> loc(#back)
  // CHECK-NEXT: return %[[V0]], %[[V1]] : tensor<4xi32>, tensor<4xf32>
  return %0, %1 : tensor<4xi32>, tensor<4xf32>
// CHECK-NEXT: }
}
#frame = loc("f"("model.py":3:11 to :16))
#neg = loc("jit(f)/jvp()/neg"(#frame))
#back = loc("jit(f)/transpose(jvp())/neg"(#frame))
