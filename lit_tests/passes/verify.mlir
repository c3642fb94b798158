// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --hlotag-verify | FileCheck %s --implicit-check-not=hlotag.
// RUN: hlotag-opt %s --hlotag-verify --hlotag-verify | FileCheck %s --implicit-check-not=hlotag.

// CHECK-LABEL: func.func @in_flight
func.func @in_flight(%i: tensor<i32>, %x: tensor<f32>) -> tensor<f32> {
  // CHECK: stablehlo.sine %{{.*}} {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
  %0 = stablehlo.sine %x {hlotag.derived = {k = "w"}, mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
  %1 = "stablehlo.case"(%i) ({
    // CHECK: stablehlo.cosine %{{.*}} {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
    %2 = stablehlo.cosine %0 {hlotag.derived = {}, mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<i32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// Strings and bools are what XLA keeps. Nothing else of the module changes.
// CHECK-LABEL: func.func @values
func.func @values(%x: tensor<f32> loc("a mark is \01more than this")) -> tensor<f32> {
  // CHECK: {b = true, empty = "", s = "\22\0A"}
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {b = true, empty = "", s = "\22\0A"}, other = 1 : i32} : tensor<f32>
  // CHECK: {mhlo.frontend_attributes = {}}
  %1 = stablehlo.cosine %0 {mhlo.frontend_attributes = {}} : tensor<f32>
  return %1 : tensor<f32>
}

// -----

// StableHLO refuses these calls with attributes that it does not know, once shapes are known.
// CHECK-LABEL: module @symbolic_shapes
module @symbolic_shapes {
  func.func @f(%holds: tensor<i1>, %x: tensor<f32>) {
    // CHECK: stablehlo.custom_call @shape_assertion(%{{[^)]*}}) {error_message = "no"} : (tensor<i1>) -> ()
    stablehlo.custom_call @shape_assertion(%holds) {error_message = "no", mhlo.frontend_attributes = {k = "v"}} : (tensor<i1>) -> ()
    // CHECK: @other({{.*}}) {mhlo.frontend_attributes = {k = "v"}}
    stablehlo.custom_call @other(%x) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> ()
    return
  }
}

// -----

// Entries that only kept outer ones off are gone, and so is a dictionary that had no others.
// CHECK-LABEL: module @unset
module @unset {
  func.func @f(%x: tensor<f32>) -> tensor<f32> {
    // CHECK: stablehlo.sine %{{[^{]*}} : tensor<f32>
    %0 = stablehlo.sine %x {mhlo.frontend_attributes = {k = ["hlotag.unset"]}} : tensor<f32>
    // CHECK: stablehlo.cosine {{.*}} {mhlo.frontend_attributes = {a = "v"}} : tensor<f32>
    %1 = stablehlo.cosine %0 {mhlo.frontend_attributes = {a = "v", k = ["hlotag.unset"]}} : tensor<f32>
    return %1 : tensor<f32>
  }
}
