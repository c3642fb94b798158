// SPDX-License-Identifier: Apache-2.0
// Two rules for one operation: the later one wins, for it and for what is derived from it, and the record says where they differ.
// RUN: hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{op = \"sine\", attrs = {k = \"1\"}, grad = {k = \"2\"}}, {op = \"sine\", attrs = {k = \"2\"}, grad = {k = \"1\"}}]"}' | FileCheck %s --implicit-check-not=frontend_attributes

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {hlotag.derived = {k = "1"}, mhlo.frontend_attributes = {k = "2"}} : tensor<f32>
  %0 = stablehlo.sine %x : tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  return %0 : tensor<f32>
// CHECK-NEXT: }
}
