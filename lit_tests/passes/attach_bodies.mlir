// SPDX-License-Identifier: Apache-2.0
// The body of a reduction is part of it; the body of a loop or branch has operations of its own.
// RUN: hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{op = \"*\", attrs = {k = \"v\"}}]"}' | FileCheck %s --implicit-check-not=frontend_attributes

// CHECK-LABEL: func.func @reduction(
// CHECK-SAME: %[[ARG0:.*]]: tensor<4xf32>, %[[ARG1:.*]]: tensor<f32>) -> tensor<f32> {
func.func @reduction(%x: tensor<4xf32>, %c: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.reduce(%[[ARG0]] init: %[[ARG1]]) across dimensions = [0] {mhlo.frontend_attributes = {k = "v"}} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  %0 = "stablehlo.reduce"(%x, %c) ({
  // CHECK-NEXT: reducer(%[[ARG2:.*]]: tensor<f32>, %[[ARG3:.*]]: tensor<f32>)  {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    // CHECK-NEXT: %[[V1:.*]] = stablehlo.add %[[ARG2]], %[[ARG3]] : tensor<f32>
    %1 = stablehlo.add %a, %b : tensor<f32>
    // CHECK-NEXT: %[[V2:.*]] = stablehlo.abs %[[V1]] : tensor<f32>
    %2 = stablehlo.abs %1 : tensor<f32>
    // CHECK-NEXT: stablehlo.return %[[V2]] : tensor<f32>
    "stablehlo.return"(%2) : (tensor<f32>) -> ()
  // CHECK-NEXT: }
  }) {dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  return %0 : tensor<f32>
// CHECK-NEXT: }
}

// CHECK-LABEL: func.func @branch(
// CHECK-SAME: %[[ARG0:.*]]: tensor<i32>, %[[ARG1:.*]]: tensor<f32>) -> tensor<f32> {
func.func @branch(%i: tensor<i32>, %x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = "stablehlo.case"(%[[ARG0]]) ({
  %0 = "stablehlo.case"(%i) ({
    // CHECK-NEXT: %[[V1:.*]] = stablehlo.sine %[[ARG1]] {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
    %1 = stablehlo.sine %x : tensor<f32>
    // CHECK-NEXT: stablehlo.return %[[V1]] : tensor<f32>
    "stablehlo.return"(%1) : (tensor<f32>) -> ()
  // CHECK-NEXT: }) {mhlo.frontend_attributes = {k = "v"}} : (tensor<i32>) -> tensor<f32>
  }) : (tensor<i32>) -> tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  return %0 : tensor<f32>
// CHECK-NEXT: }
}

// MHLO's loop is StableHLO's.
// CHECK-LABEL: func.func @loop(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>, %[[ARG1:.*]]: tensor<i1>) -> tensor<f32> {
func.func @loop(%x: tensor<f32>, %p: tensor<i1>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = mhlo.while(%[[ITERARG:.*]] = %[[ARG0]]) : tensor<f32> attributes {mhlo.frontend_attributes = {k = "v"}}
  %0 = "mhlo.while"(%x) ({
  // CHECK-NEXT: cond {
  ^bb0(%a: tensor<f32>):
    // CHECK-NEXT: mhlo.return %[[ARG1]] : tensor<i1>
    "mhlo.return"(%p) : (tensor<i1>) -> ()
  // CHECK-NEXT: } do {
  }, {
  ^bb0(%a: tensor<f32>):
    // CHECK-NEXT: %[[V1:.*]] = mhlo.sine %[[ITERARG]] {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
    %1 = mhlo.sine %a : tensor<f32>
    // CHECK-NEXT: mhlo.return %[[V1]] : tensor<f32>
    "mhlo.return"(%1) : (tensor<f32>) -> ()
  // CHECK-NEXT: }
  }) : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  return %0 : tensor<f32>
// CHECK-NEXT: }
}
