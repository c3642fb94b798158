// SPDX-License-Identifier: Apache-2.0
// A scope pattern stands for whole elements of the path, which transforms do not disturb.
// RUN: hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{scope = \"layer*/attn\", attrs = {k = \"v\"}}]"}' | FileCheck %s --implicit-check-not=frontend_attributes
// RUN: hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{scope = \"**/layer*/attn/**\", attrs = {k = \"v\"}}]"}' | FileCheck %s --implicit-check-not=frontend_attributes

// CHECK-LABEL: func.func @scopes(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func @scopes(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
  %0 = stablehlo.sine %x : tensor<f32> loc("jit(f)/layer_0/attn/sin")
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.cosine %[[V0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
  %1 = stablehlo.cosine %0 : tensor<f32> loc("jit(f)/transpose(jvp(decoder))/layer_1/attn/softmax/cos")
  // CHECK-NEXT: %[[V2:.*]] = stablehlo.tanh %[[V1]] : tensor<f32>
  %2 = stablehlo.tanh %1 : tensor<f32> loc("jit(f)/layer_1/attn_out/tanh")
  // CHECK-NEXT: %[[V3:.*]] = stablehlo.abs %[[V2]] : tensor<f32>
  %3 = stablehlo.abs %2 : tensor<f32> loc("jit(f)/my_layer/attn/abs")
  // A name around a position is a scope, around a range a frame of the traceback.
  // CHECK-NEXT: %[[V4:.*]] = stablehlo.floor %[[V3]] {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
  %4 = stablehlo.floor %3 : tensor<f32> loc("attn/floor"("layer_2"("how to train/model.py":3:4)))
  // CHECK-NEXT: %[[V5:.*]] = stablehlo.ceil %[[V4]] : tensor<f32>
  %5 = stablehlo.ceil %4 : tensor<f32> loc("attn/ceil"("layer_2"("model.py":3:4 to :9)))
  // CHECK-NEXT: return %[[V5]] : tensor<f32>
  return %5 : tensor<f32>
// CHECK-NEXT: }
}
