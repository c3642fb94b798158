// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --hlotag-propagate | FileCheck %s --implicit-check-not=frontend_attributes
// A second run finds nothing to do.
// RUN: hlotag-opt %s --hlotag-propagate --hlotag-propagate | FileCheck %s --implicit-check-not=frontend_attributes

// CHECK-LABEL: func.func @branches(
// CHECK-SAME: %[[ARG0:.*]]: tensor<i32>, %[[ARG1:.*]]: tensor<f32>) -> tensor<f32> {
func.func @branches(%i: tensor<i32>, %x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = "stablehlo.case"(%[[ARG0]]) ({
  %0 = "stablehlo.case"(%i) ({
    // CHECK-NEXT: %[[V2:.*]] = stablehlo.sine %[[ARG1]] {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
    %1 = stablehlo.sine %x : tensor<f32>
    // CHECK-NEXT: %[[CST:.*]] = stablehlo.constant {mhlo.frontend_attributes = {k = "v"}} dense<1.000000e+00> : tensor<f32>
    %2 = stablehlo.constant dense<1.0> : tensor<f32>
    // CHECK-NEXT: %[[V3:.*]] = stablehlo.add %[[V2]], %[[CST]] {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
    %3 = stablehlo.add %1, %2 : tensor<f32>
    // CHECK-NEXT: stablehlo.return %[[V3]] : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  // CHECK-NEXT: }, {
  }, {
    // A key that is there keeps its value; others are added.
    // CHECK-NEXT: %[[V2]] = stablehlo.cosine %[[ARG1]] {mhlo.frontend_attributes = {k = "own"}} : tensor<f32>
    %1 = stablehlo.cosine %x {mhlo.frontend_attributes = {k = "own"}} : tensor<f32>
    // CHECK-NEXT: %[[V3]] = stablehlo.tanh %[[V2]] {mhlo.frontend_attributes = {b = "w", k = "v"}} : tensor<f32>
    %2 = stablehlo.tanh %1 {mhlo.frontend_attributes = {b = "w"}} : tensor<f32>
    // CHECK-NEXT: stablehlo.return %[[V3]] : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  // CHECK-NEXT: }) {mhlo.frontend_attributes = {k = "v"}} : (tensor<i32>) -> tensor<f32>
  }) {mhlo.frontend_attributes = {k = "v"}} : (tensor<i32>) -> tensor<f32>
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.abs %[[V0]] : tensor<f32>
  %4 = stablehlo.abs %0 : tensor<f32>
  // CHECK-NEXT: return %[[V1]] : tensor<f32>
  return %4 : tensor<f32>
// CHECK-NEXT: }
}

// Regions in regions: what the inner one has comes first, what the outer one has arrives too.
// CHECK-LABEL: func.func @nested(
// CHECK-SAME: %[[ARG0:.*]]: tensor<i32>, %[[ARG1:.*]]: tensor<i32>, %[[ARG2:.*]]: tensor<f32>) -> tensor<f32> {
func.func @nested(%n: tensor<i32>, %i: tensor<i32>, %x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]]:2 = stablehlo.while(%[[ITERARG:.*]] = %[[ARG0]], %[[ITERARG_0:.*]] = %[[ARG2]]) : tensor<i32>, tensor<f32> attributes {mhlo.frontend_attributes = {k = "outer", o = "1"}}
  %0:2 = stablehlo.while(%a = %n, %b = %x) : tensor<i32>, tensor<f32>
    // CHECK-NEXT: cond {
    attributes {mhlo.frontend_attributes = {k = "outer", o = "1"}}
  cond {
    // CHECK-NEXT: %[[V1:.*]] = stablehlo.compare LT, %[[ITERARG]], %[[ITERARG]] {mhlo.frontend_attributes = {k = "outer", o = "1"}} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %1 = stablehlo.compare LT, %a, %a : (tensor<i32>, tensor<i32>) -> tensor<i1>
    // CHECK-NEXT: stablehlo.return %[[V1]] : tensor<i1>
    stablehlo.return %1 : tensor<i1>
  // CHECK-NEXT: } do {
  } do {
    // CHECK-NEXT: %[[V1]] = "stablehlo.case"(%[[ARG1]]) ({
    %1 = "stablehlo.case"(%i) ({
      // CHECK-NEXT: %[[V2:.*]] = stablehlo.sine %[[ITERARG_0]] {mhlo.frontend_attributes = {k = "inner", o = "1"}} : tensor<f32>
      %2 = stablehlo.sine %b : tensor<f32>
      // CHECK-NEXT: stablehlo.return %[[V2]] : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    // CHECK-NEXT: }) {mhlo.frontend_attributes = {k = "inner", o = "1"}} : (tensor<i32>) -> tensor<f32>
    }) {mhlo.frontend_attributes = {k = "inner"}} : (tensor<i32>) -> tensor<f32>
    // CHECK-NEXT: stablehlo.return %[[ITERARG]], %[[V1]] : tensor<i32>, tensor<f32>
    stablehlo.return %a, %1 : tensor<i32>, tensor<f32>
  // CHECK-NEXT: }
  }
  // CHECK-NEXT: return %[[V0]]#1 : tensor<f32>
  return %0#1 : tensor<f32>
// CHECK-NEXT: }
}

// A reduction that MLIR prints in short form has a body too, and it must survive printing.
// CHECK-LABEL: func.func @reduction(
// CHECK-SAME: %[[ARG0:.*]]: tensor<4xf32>, %[[ARG1:.*]]: tensor<f32>) -> tensor<f32> {
func.func @reduction(%x: tensor<4xf32>, %init: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.reduce(%[[ARG0]] init: %[[ARG1]]) applies stablehlo.add across dimensions = [0] {mhlo.frontend_attributes = {k = "v"}} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [0]
    {mhlo.frontend_attributes = {k = "v"}} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  return %0 : tensor<f32>
// CHECK-NEXT: }
}

// What describes one operation stays on it, and functions hand on nothing.
// CHECK-LABEL: func.func @kept(
// CHECK-SAME: %[[ARG0:.*]]: tensor<i32>, %[[ARG1:.*]]: tensor<f32>) -> tensor<f32> attributes {mhlo.frontend_attributes = {f = "1"}} {
// CHECK-NEXT: %[[V0:.*]] = "stablehlo.case"(%[[ARG0]]) ({
// CHECK-NEXT: %[[V1:.*]] = stablehlo.sine %[[ARG1]] {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
// CHECK-NEXT: stablehlo.return %[[V1]] : tensor<f32>
// CHECK-NEXT: }) {mhlo.frontend_attributes = {backend_config = "{}", inlineable = "false", k = "v", num_batch_dims = "0", ragged_dot_tiling = "8,8,8", xla.sdy.x = "y", xla_metadata_payload = "{}"}} : (tensor<i32>) -> tensor<f32>
// CHECK-NEXT: return %[[V0]] : tensor<f32>
// CHECK-NEXT: }
func.func @kept(%i: tensor<i32>, %x: tensor<f32>) -> tensor<f32>
    // CHECK: module @unset {
    attributes {mhlo.frontend_attributes = {f = "1"}} {
  %0 = "stablehlo.case"(%i) ({
    %1 = stablehlo.sine %x : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {mhlo.frontend_attributes = {backend_config = "{}", inlineable = "false", k = "v", num_batch_dims = "0", ragged_dot_tiling = "8,8,8", xla.sdy.x = "y", xla_metadata_payload = "{}"}} : (tensor<i32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// A key that is not to be there is not given back, and is not handed on.
module @unset {
  // CHECK-LABEL: func.func @f(
  // CHECK-SAME: %[[ARG0:.*]]: tensor<4xf32>, %[[ARG1:.*]]: tensor<f32>) -> tensor<f32> {
  func.func @f(%x: tensor<4xf32>, %c: tensor<f32>) -> tensor<f32> {
    // CHECK-NEXT: %[[V0:.*]] = stablehlo.reduce(%[[ARG0]] init: %[[ARG1]]) across dimensions = [0] {mhlo.frontend_attributes = {k = "v", o = "v", p = ["hlotag.unset"]}} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %0 = "stablehlo.reduce"(%x, %c) <{dimensions = array<i64: 0>}> ({
    // CHECK-NEXT: reducer(%[[ARG2:.*]]: tensor<f32>, %[[ARG3:.*]]: tensor<f32>)  {
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      // CHECK-NEXT: %[[V1:.*]] = stablehlo.add %[[ARG2]], %[[ARG3]] {mhlo.frontend_attributes = {k = ["hlotag.unset"], o = "v"}} : tensor<f32>
      %1 = stablehlo.add %a, %b {mhlo.frontend_attributes = {k = ["hlotag.unset"]}} : tensor<f32>
      // CHECK-NEXT: %[[V2:.*]] = stablehlo.multiply %[[V1]], %[[ARG3]] {mhlo.frontend_attributes = {k = "v", o = "v"}} : tensor<f32>
      %2 = stablehlo.multiply %1, %b : tensor<f32>
      // CHECK-NEXT: stablehlo.return %[[V2]] : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    // CHECK-NEXT: }
    }) {mhlo.frontend_attributes = {k = "v", o = "v", p = ["hlotag.unset"]}} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    // CHECK-NEXT: return %[[V0]] : tensor<f32>
    return %0 : tensor<f32>
  // CHECK-NEXT: }
  }
}

// -----

// A terminator of any dialect gets none.
// CHECK-LABEL: func.func @terminator(
// CHECK-SAME: %[[ARG0:.*]]: memref<4xi32>, %[[ARG1:.*]]: i32, %[[ARG2:.*]]: index, %[[ARG3:.*]]: index) {
// CHECK-NEXT: scf.parallel (%[[ARG4:.*]]) = (%[[ARG2]]) to (%[[ARG3]]) step (%[[ARG3]]) {
// CHECK-NEXT: memref.store %[[ARG1]], %[[ARG0]][%[[ARG4]]] {mhlo.frontend_attributes = {k = "v"}} : memref<4xi32>
// CHECK-NEXT: scf.reduce
// CHECK-NEXT: } {mhlo.frontend_attributes = {k = "v"}}
func.func @terminator(%a: memref<4xi32>, %v: i32, %lo: index, %hi: index) {
  scf.parallel (%i) = (%lo) to (%hi) step (%hi) {
    memref.store %v, %a[%i] : memref<4xi32>
    scf.reduce
  } {mhlo.frontend_attributes = {k = "v"}}
  // CHECK-NEXT: return
  return
// CHECK-NEXT: }
}
