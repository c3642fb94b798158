// SPDX-License-Identifier: Apache-2.0
// Rules by operation, with its dialect or without, and by function. What an operation has already stays.
// RUN: hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{op = \"sine\", attrs = {a = \"1\"}}, {op = \"stablehlo.cos*\", attrs = {b = \"2\"}}, {function = \"?aves\", attrs = {c = true}}]"}' | FileCheck %s --implicit-check-not=frontend_attributes

// CHECK-LABEL: func.func @waves(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func @waves(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {a = "1", c = true}} : tensor<f32>
  %0 = stablehlo.sine %x : tensor<f32>
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.cosine %[[V0]] {mhlo.frontend_attributes = {b = "2", c = true}} : tensor<f32>
  %1 = stablehlo.cosine %0 : tensor<f32>
  // CHECK-NEXT: %[[V2:.*]] = stablehlo.sine %[[V1]] {mhlo.frontend_attributes = {a = "own", c = true}} : tensor<f32>
  %2 = stablehlo.sine %1 {mhlo.frontend_attributes = {a = "own"}} : tensor<f32>
  // CHECK-NEXT: return %[[V2]] : tensor<f32>
  return %2 : tensor<f32>
// CHECK-NEXT: }
}

// CHECK-LABEL: func.func @leaves(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func @leaves(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.tanh %[[ARG0]] : tensor<f32>
  %0 = stablehlo.tanh %x : tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  return %0 : tensor<f32>
// CHECK-NEXT: }
}

// CHECK-LABEL: func.func @caves(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func @caves(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.tanh %[[ARG0]] {mhlo.frontend_attributes = {c = true}} : tensor<f32>
  %0 = stablehlo.tanh %x : tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  return %0 : tensor<f32>
// CHECK-NEXT: }
}
