// SPDX-License-Identifier: Apache-2.0
// In a rule for the backward pass, `attrs` is for the operations of that pass, and `grad` for none.
// RUN: hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{op = \"sine\", phase = \"backward\", attrs = {k = \"b\"}, grad = {k = \"never\"}}]"}' | FileCheck %s --implicit-check-not=frontend_attributes

// CHECK-LABEL: func.func @phases(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func @phases(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] : tensor<f32>
  %0 = stablehlo.sine %x : tensor<f32> loc("jit(f)/jvp()/sin")
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.tanh %[[V0]] : tensor<f32>
  %1 = stablehlo.tanh %0 : tensor<f32> loc("jit(f)/jvp()/tanh")
  // CHECK-NEXT: %[[V2:.*]] = stablehlo.abs %[[V1]] : tensor<f32>
  %2 = stablehlo.abs %1 : tensor<f32> loc("jit(f)/jvp()/abs")
  // CHECK-NEXT: %[[V3:.*]] = stablehlo.sine %[[V2]] {mhlo.frontend_attributes = {k = "b"}} : tensor<f32>
  %3 = stablehlo.sine %2 : tensor<f32> loc("jit(f)/transpose(jvp())/sin")
  // CHECK-NEXT: %[[V4:.*]] = stablehlo.tanh %[[V3]] : tensor<f32>
  %4 = stablehlo.tanh %3 : tensor<f32> loc("jit(f)/transpose(jvp())/tanh")
  // CHECK-NEXT: return %[[V4]] : tensor<f32>
  return %4 : tensor<f32>
// CHECK-NEXT: }
}
