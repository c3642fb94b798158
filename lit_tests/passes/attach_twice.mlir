// SPDX-License-Identifier: Apache-2.0
// A second pass adds the keys that the first one left.
// RUN: hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{op = \"sine\", attrs = {a = \"1\"}}]"},hlotag-attach{rules="[{op = \"sine\", attrs = {a = \"2\", b = \"2\"}}]"}' | FileCheck %s --implicit-check-not=frontend_attributes

// CHECK-LABEL: func.func @waves(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func @waves(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {a = "1", b = "2"}} : tensor<f32>
  %0 = stablehlo.sine %x : tensor<f32>
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.cosine %[[V0]] : tensor<f32>
  %1 = stablehlo.cosine %0 : tensor<f32>
  // CHECK-NEXT: %[[V2:.*]] = stablehlo.sine %[[V1]] {mhlo.frontend_attributes = {a = "own", b = "2"}} : tensor<f32>
  %2 = stablehlo.sine %1 {mhlo.frontend_attributes = {a = "own"}} : tensor<f32>
  // CHECK-NEXT: return %[[V2]] : tensor<f32>
  return %2 : tensor<f32>
// CHECK-NEXT: }
}
