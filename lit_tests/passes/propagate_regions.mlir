// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --hlotag-propagate-regions | FileCheck %s
// A second run finds nothing to do.
// RUN: hlotag-opt %s --hlotag-propagate-regions --hlotag-propagate-regions | FileCheck %s

// CHECK-LABEL: func.func @branches
func.func @branches(%i: tensor<i32>, %x: tensor<f32>) -> tensor<f32> {
  // CHECK: stablehlo.case
  %0 = "stablehlo.case"(%i) ({
    // CHECK: stablehlo.sine {{.*}} {mhlo.frontend_attributes = {k = "v"}}
    %1 = stablehlo.sine %x : tensor<f32>
    // CHECK: stablehlo.constant {mhlo.frontend_attributes = {k = "v"}}
    %2 = stablehlo.constant dense<1.0> : tensor<f32>
    // CHECK: stablehlo.add {{.*}} {mhlo.frontend_attributes = {k = "v"}}
    %3 = stablehlo.add %1, %2 : tensor<f32>
    // CHECK: stablehlo.return %{{[0-9]+}} : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }, {
    // A key that is there keeps its value; others are added.
    // CHECK: stablehlo.cosine {{.*}} {mhlo.frontend_attributes = {k = "own"}}
    %1 = stablehlo.cosine %x {mhlo.frontend_attributes = {k = "own"}} : tensor<f32>
    // CHECK: stablehlo.tanh {{.*}} {mhlo.frontend_attributes = {b = "w", k = "v"}}
    %2 = stablehlo.tanh %1 {mhlo.frontend_attributes = {b = "w"}} : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) {mhlo.frontend_attributes = {k = "v"}} : (tensor<i32>) -> tensor<f32>
  // CHECK: }) {mhlo.frontend_attributes = {k = "v"}}
  // CHECK: stablehlo.abs %{{[0-9]+}} : tensor<f32>
  %4 = stablehlo.abs %0 : tensor<f32>
  return %4 : tensor<f32>
}

// Regions in regions: what the inner one has comes first, what the outer one has arrives too.
// CHECK-LABEL: func.func @nested
func.func @nested(%n: tensor<i32>, %i: tensor<i32>, %x: tensor<f32>) -> tensor<f32> {
  %0:2 = stablehlo.while(%a = %n, %b = %x) : tensor<i32>, tensor<f32>
    attributes {mhlo.frontend_attributes = {k = "outer", o = "1"}}
  cond {
    // CHECK: stablehlo.compare {{.*}}k = "outer", o = "1"
    %1 = stablehlo.compare LT, %a, %a : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = "stablehlo.case"(%i) ({
      // CHECK: stablehlo.sine {{.*}}k = "inner", o = "1"
      %2 = stablehlo.sine %b : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) {mhlo.frontend_attributes = {k = "inner"}} : (tensor<i32>) -> tensor<f32>
    // CHECK: }) {mhlo.frontend_attributes = {k = "inner", o = "1"}}
    stablehlo.return %a, %1 : tensor<i32>, tensor<f32>
  }
  return %0#1 : tensor<f32>
}

// A reduction that MLIR prints in short form has a body too, and it must survive printing.
// CHECK-LABEL: func.func @reduction
func.func @reduction(%x: tensor<4xf32>, %init: tensor<f32>) -> tensor<f32> {
  // CHECK: stablehlo.reduce(
  // CHECK: stablehlo.add {{.*}}k = "v"
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [0]
    {mhlo.frontend_attributes = {k = "v"}} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// What describes one operation stays on it, and functions hand on nothing.
// CHECK-LABEL: func.func @kept
func.func @kept(%i: tensor<i32>, %x: tensor<f32>) -> tensor<f32>
    attributes {mhlo.frontend_attributes = {f = "1"}} {
  %0 = "stablehlo.case"(%i) ({
    // CHECK: stablehlo.sine {{.*}} {mhlo.frontend_attributes = {k = "v"}}
    %1 = stablehlo.sine %x : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {mhlo.frontend_attributes = {backend_config = "{}", inlineable = "false", k = "v", num_batch_dims = "0", ragged_dot_tiling = "8,8,8", xla.sdy.x = "y", xla_metadata_payload = "{}"}} : (tensor<i32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// A key that is not to be there is not given back, and is not handed on.
// CHECK-LABEL: module @unset
module @unset {
  func.func @f(%x: tensor<4xf32>, %c: tensor<f32>) -> tensor<f32> {
    // CHECK: stablehlo.reduce
    %0 = "stablehlo.reduce"(%x, %c) <{dimensions = array<i64: 0>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      // CHECK: stablehlo.add {{.*}} {mhlo.frontend_attributes = {k = ["hlotag.unset"], o = "v"}}
      %1 = stablehlo.add %a, %b {mhlo.frontend_attributes = {k = ["hlotag.unset"]}} : tensor<f32>
      // CHECK: stablehlo.multiply {{.*}} {mhlo.frontend_attributes = {k = "v", o = "v"}}
      %2 = stablehlo.multiply %1, %b : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) {mhlo.frontend_attributes = {k = "v", o = "v", p = ["hlotag.unset"]}} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// A terminator of any dialect gets none.
// CHECK-LABEL: func.func @terminator
func.func @terminator(%a: memref<4xi32>, %v: i32, %lo: index, %hi: index) {
  scf.parallel (%i) = (%lo) to (%hi) step (%hi) {
    // CHECK: memref.store {{.*}}k = "v"
    memref.store %v, %a[%i] : memref<4xi32>
    // CHECK-NEXT: scf.reduce{{ *$}}
    scf.reduce
  } {mhlo.frontend_attributes = {k = "v"}}
  return
}
