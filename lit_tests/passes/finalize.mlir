// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --hlotag-finalize | FileCheck %s --implicit-check-not=frontend_attributes --implicit-check-not=hlotag.
// RUN: hlotag-opt %s --hlotag-finalize --hlotag-finalize | FileCheck %s --implicit-check-not=frontend_attributes --implicit-check-not=hlotag.

// CHECK-LABEL: func.func @in_flight(
// CHECK-SAME: %[[ARG0:.*]]: tensor<i32>, %[[ARG1:.*]]: tensor<f32>) -> tensor<f32> {
func.func @in_flight(%i: tensor<i32>, %x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG1]] {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
  %0 = stablehlo.sine %x {hlotag.derived = {k = "w"}, mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
  // CHECK-NEXT: %[[V1:.*]] = "stablehlo.case"(%[[ARG0]]) ({
  %1 = "stablehlo.case"(%i) ({
    // CHECK-NEXT: %[[V2:.*]] = stablehlo.cosine %[[V0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
    %2 = stablehlo.cosine %0 {hlotag.derived = {}, mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
    // CHECK-NEXT: stablehlo.return %[[V2]] : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  // CHECK-NEXT: }) : (tensor<i32>) -> tensor<f32>
  }) : (tensor<i32>) -> tensor<f32>
  // CHECK-NEXT: return %[[V1]] : tensor<f32>
  return %1 : tensor<f32>
// CHECK-NEXT: }
}

// Strings and bools are what XLA keeps. Nothing else of the module changes.
// CHECK-LABEL: func.func @values(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func @values(%x: tensor<f32> loc("a mark is \01more than this")) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {b = true, empty = "", s = "\22\0A"}, other = 1 : i32} : tensor<f32>
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {b = true, empty = "", s = "\22\0A"}, other = 1 : i32} : tensor<f32>
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.cosine %[[V0]] {mhlo.frontend_attributes = {}} : tensor<f32>
  %1 = stablehlo.cosine %0 {mhlo.frontend_attributes = {}} : tensor<f32>
  // CHECK-NEXT: return %[[V1]] : tensor<f32>
  return %1 : tensor<f32>
// CHECK-NEXT: }
}
// CHECK: module @symbolic_shapes {

// -----

// StableHLO refuses these calls, and not MHLO's, with attributes that it does not know, once shapes are known.
module @symbolic_shapes {
  func.func @f(%holds: tensor<i1>, %x: tensor<f32>) {
    stablehlo.custom_call @shape_assertion(%holds) {error_message = "no", mhlo.frontend_attributes = {k = "v"}} : (tensor<i1>) -> ()
    mhlo.custom_call @shape_assertion(%holds) {mhlo.frontend_attributes = {k = "v"}} : (tensor<i1>) -> ()
    stablehlo.custom_call @other(%x) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> ()
    return
  }
}

// -----

// Entries that only kept outer ones off are gone, and so is a dictionary that had no others.
module @unset {
  // CHECK-LABEL: func.func @f(
  // CHECK-SAME: %[[ARG0:.*]]: tensor<i1>, %[[ARG1:.*]]: tensor<f32>) {
  // CHECK-NEXT: stablehlo.custom_call @shape_assertion(%[[ARG0]]) {error_message = "no"} : (tensor<i1>) -> ()
  // CHECK-NEXT: mhlo.custom_call @shape_assertion(%[[ARG0]]) {mhlo.frontend_attributes = {k = "v"}} : (tensor<i1>) -> ()
  // CHECK-NEXT: stablehlo.custom_call @other(%[[ARG1]]) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> ()
  // CHECK-NEXT: return
  // CHECK-NEXT: }
  func.func @f(%x: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.sine %x {mhlo.frontend_attributes = {k = ["hlotag.unset"]}} : tensor<f32>
    %1 = stablehlo.cosine %0 {mhlo.frontend_attributes = {a = "v", k = ["hlotag.unset"]}} : tensor<f32>
    return %1 : tensor<f32>
  }
// CHECK: module @unset {
// CHECK-LABEL: func.func @f(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
// CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] : tensor<f32>
// CHECK-NEXT: %[[V1:.*]] = stablehlo.cosine %[[V0]] {mhlo.frontend_attributes = {a = "v"}} : tensor<f32>
// CHECK-NEXT: return %[[V1]] : tensor<f32>
// CHECK-NEXT: }
}
