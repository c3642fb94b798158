// SPDX-License-Identifier: Apache-2.0
// A key that an operation has already gives nothing to derived operations either.
// RUN: hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{op = \"sine\", attrs = {a = \"1\", b = \"1\"}, grad = {a = \"2\", b = \"2\"}}]"}' | FileCheck %s --implicit-check-not=frontend_attributes

// CHECK-LABEL: func.func @waves(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func @waves(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {hlotag.derived = {a = "2", b = "2"}, mhlo.frontend_attributes = {a = "1", b = "1"}} : tensor<f32>
  %0 = stablehlo.sine %x : tensor<f32>
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.cosine %[[V0]] : tensor<f32>
  %1 = stablehlo.cosine %0 : tensor<f32>
  // CHECK-NEXT: %[[V2:.*]] = stablehlo.sine %[[V1]] {hlotag.derived = {b = "2"}, mhlo.frontend_attributes = {a = "own", b = "1"}} : tensor<f32>
  %2 = stablehlo.sine %1 {mhlo.frontend_attributes = {a = "own"}} : tensor<f32>
  // CHECK-NEXT: return %[[V2]] : tensor<f32>
  return %2 : tensor<f32>
// CHECK-NEXT: }
}
