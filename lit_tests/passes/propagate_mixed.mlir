// SPDX-License-Identifier: Apache-2.0
// UNSUPPORTED: mlir-opt
// RUN: hlotag-opt %s --hlotag-propagate --split-input-file | FileCheck %s --implicit-check-not=frontend_attributes
// A second run finds nothing to do.
// RUN: hlotag-opt %s --hlotag-propagate --hlotag-propagate --split-input-file | FileCheck %s --implicit-check-not=frontend_attributes
// Regions and calls in each other: the innermost operation that has a key decides.

// A call in regions in a function that is called: its own value, theirs, the caller's.
// CHECK-LABEL: func.func public @main(
// CHECK-SAME: %[[ARG0:.*]]: tensor<i32>, %[[ARG1:.*]]: tensor<f32>) -> tensor<f32> {
func.func public @main(%i: tensor<i32>, %x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = call @f(%[[ARG0]], %[[ARG1]]) {mhlo.frontend_attributes = {caller = "c", own = "c", region = "c"}} : (tensor<i32>, tensor<f32>) -> tensor<f32>
  %0 = call @f(%i, %x) {mhlo.frontend_attributes = {caller = "c", own = "c", region = "c"}} : (tensor<i32>, tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  return %0 : tensor<f32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @f(
// CHECK-SAME: %[[ARG0:.*]]: tensor<i32>, %[[ARG1:.*]]: tensor<f32>) -> tensor<f32> {
func.func private @f(%i: tensor<i32>, %x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = "stablehlo.case"(%[[ARG0]]) ({
  %0 = "stablehlo.case"(%i) ({
    // CHECK-NEXT: %[[V1:.*]] = func.call @g(%[[ARG1]]) {mhlo.frontend_attributes = {caller = "c", own = "o", region = "r"}} : (tensor<f32>) -> tensor<f32>
    %1 = func.call @g(%x) {mhlo.frontend_attributes = {own = "o"}} : (tensor<f32>) -> tensor<f32>
    // CHECK-NEXT: stablehlo.return %[[V1]] : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  // CHECK-NEXT: }) {mhlo.frontend_attributes = {caller = "c", own = "r", region = "r"}} : (tensor<i32>) -> tensor<f32>
  }) {mhlo.frontend_attributes = {own = "r", region = "r"}} : (tensor<i32>) -> tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  return %0 : tensor<f32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @g(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func private @g(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {caller = "c", own = "o", region = "r"}} : tensor<f32>
  %0 = stablehlo.sine %x : tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  return %0 : tensor<f32>
// CHECK-NEXT: }
}

// -----

// An unset key of a call is a barrier for what its caller passes.
// CHECK-LABEL: func.func public @main(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = call @f(%[[ARG0]]) {mhlo.frontend_attributes = {k = "v", l = "v"}} : (tensor<f32>) -> tensor<f32>
  %0 = call @f(%x) {mhlo.frontend_attributes = {k = "v", l = "v"}} : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  return %0 : tensor<f32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @f(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = call @g(%[[ARG0]]) {mhlo.frontend_attributes = {k = ["hlotag.unset"], l = "v"}} : (tensor<f32>) -> tensor<f32>
  %0 = call @g(%x) {mhlo.frontend_attributes = {k = ["hlotag.unset"]}} : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  return %0 : tensor<f32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @g(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func private @g(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {l = "v"}} : tensor<f32>
  %0 = stablehlo.sine %x : tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  return %0 : tensor<f32>
// CHECK-NEXT: }
}

// -----

// An unset key of an operation with regions is one for what its function is called with, and for
// what is around it. A value within is not.
// CHECK-LABEL: func.func public @main(
// CHECK-SAME: %[[ARG0:.*]]: tensor<i32>, %[[ARG1:.*]]: tensor<f32>) -> tensor<f32> {
func.func public @main(%i: tensor<i32>, %x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = call @f(%[[ARG0]], %[[ARG1]]) {mhlo.frontend_attributes = {k = "v"}} : (tensor<i32>, tensor<f32>) -> tensor<f32>
  %0 = call @f(%i, %x) {mhlo.frontend_attributes = {k = "v"}} : (tensor<i32>, tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  return %0 : tensor<f32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @f(
// CHECK-SAME: %[[ARG0:.*]]: tensor<i32>, %[[ARG1:.*]]: tensor<f32>) -> tensor<f32> {
func.func private @f(%i: tensor<i32>, %x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = "stablehlo.case"(%[[ARG0]]) ({
  %0 = "stablehlo.case"(%i) ({
    // CHECK-NEXT: %[[V1:.*]] = "stablehlo.case"(%[[ARG0]]) ({
    %1 = "stablehlo.case"(%i) ({
      // CHECK-NEXT: %[[V2:.*]] = stablehlo.sine %[[ARG1]] : tensor<f32>
      %2 = stablehlo.sine %x : tensor<f32>
      // CHECK-NEXT: %[[V3:.*]] = "stablehlo.case"(%[[ARG0]]) ({
      %3 = "stablehlo.case"(%i) ({
        // CHECK-NEXT: %[[V4:.*]] = func.call @g(%[[V2]]) {mhlo.frontend_attributes = {k = "w"}} : (tensor<f32>) -> tensor<f32>
        %4 = func.call @g(%2) : (tensor<f32>) -> tensor<f32>
        // CHECK-NEXT: stablehlo.return %[[V4]] : tensor<f32>
        stablehlo.return %4 : tensor<f32>
      // CHECK-NEXT: }) {mhlo.frontend_attributes = {k = "w"}} : (tensor<i32>) -> tensor<f32>
      }) {mhlo.frontend_attributes = {k = "w"}} : (tensor<i32>) -> tensor<f32>
      // CHECK-NEXT: stablehlo.return %[[V3]] : tensor<f32>
      stablehlo.return %3 : tensor<f32>
    // CHECK-NEXT: }) {mhlo.frontend_attributes = {k = ["hlotag.unset"]}} : (tensor<i32>) -> tensor<f32>
    }) {mhlo.frontend_attributes = {k = ["hlotag.unset"]}} : (tensor<i32>) -> tensor<f32>
    // CHECK-NEXT: stablehlo.return %[[V1]] : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  // CHECK-NEXT: }) {mhlo.frontend_attributes = {k = "v"}} : (tensor<i32>) -> tensor<f32>
  }) : (tensor<i32>) -> tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  return %0 : tensor<f32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @g(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func private @g(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.cosine %[[ARG0]] {mhlo.frontend_attributes = {k = "w"}} : tensor<f32>
  %0 = stablehlo.cosine %x : tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  return %0 : tensor<f32>
// CHECK-NEXT: }
}

// -----

// Nothing in the function would change, since the operations around all others have the key: no
// copy for the call that passes it.
// CHECK-LABEL: func.func public @main(
// CHECK-SAME: %[[ARG0:.*]]: tensor<i32>, %[[ARG1:.*]]: tensor<f32>) -> tensor<f32> {
func.func public @main(%i: tensor<i32>, %x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = call @f(%[[ARG0]], %[[ARG1]]) {mhlo.frontend_attributes = {k = "v"}} : (tensor<i32>, tensor<f32>) -> tensor<f32>
  %0 = call @f(%i, %x) {mhlo.frontend_attributes = {k = "v"}} : (tensor<i32>, tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: %[[V1:.*]] = call @f(%[[ARG0]], %[[V0]]) : (tensor<i32>, tensor<f32>) -> tensor<f32>
  %1 = call @f(%i, %0) : (tensor<i32>, tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: return %[[V1]] : tensor<f32>
  return %1 : tensor<f32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @f(
// CHECK-SAME: %[[ARG0:.*]]: tensor<i32>, %[[ARG1:.*]]: tensor<f32>) -> tensor<f32> {
func.func private @f(%i: tensor<i32>, %x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = "stablehlo.case"(%[[ARG0]]) ({
  %0 = "stablehlo.case"(%i) ({
    // CHECK-NEXT: %[[V1:.*]] = stablehlo.sine %[[ARG1]] {mhlo.frontend_attributes = {k = "w"}} : tensor<f32>
    %1 = stablehlo.sine %x : tensor<f32>
    // CHECK-NEXT: stablehlo.return %[[V1]] : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  // CHECK-NEXT: }) {mhlo.frontend_attributes = {k = "w"}} : (tensor<i32>) -> tensor<f32>
  }) {mhlo.frontend_attributes = {k = "w"}} : (tensor<i32>) -> tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  return %0 : tensor<f32>
// CHECK-NEXT: }
}

// -----

// Keys that XLA reads, of the catalogue and of its form, stay out of regions that become computations of their own: what a
// reduction applies, in the functions that it calls too, and the body of a loop.
// CHECK-LABEL: func.func public @main(
// CHECK-SAME: %[[ARG0:.*]]: tensor<i32>, %[[ARG1:.*]]: tensor<4xf32>, %[[ARG2:.*]]: tensor<f32>) -> tensor<f32> {
func.func public @main(%n: tensor<i32>, %x: tensor<4xf32>, %z: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = call @f(%[[ARG0]], %[[ARG1]], %[[ARG2]]) {mhlo.frontend_attributes = {MUST_FUSE = "1", k = "v"}} : (tensor<i32>, tensor<4xf32>, tensor<f32>) -> tensor<f32>
  %0 = call @f(%n, %x, %z) {mhlo.frontend_attributes = {MUST_FUSE = "1", k = "v"}} : (tensor<i32>, tensor<4xf32>, tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  return %0 : tensor<f32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @f(
// CHECK-SAME: %[[ARG0:.*]]: tensor<i32>, %[[ARG1:.*]]: tensor<4xf32>, %[[ARG2:.*]]: tensor<f32>) -> tensor<f32> {
func.func private @f(%n: tensor<i32>, %x: tensor<4xf32>, %z: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.reduce(%[[ARG1]] init: %[[ARG2]]) across dimensions = [0] {mhlo.frontend_attributes = {MUST_FUSE = "1", _new_key = "2", k = "v", l = "w", xla_other = "3"}} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  %0 = "stablehlo.reduce"(%x, %z) <{dimensions = array<i64: 0>}> ({
  // CHECK-NEXT: reducer(%[[ARG3:.*]]: tensor<f32>, %[[ARG4:.*]]: tensor<f32>)  {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    // CHECK-NEXT: %[[V2:.*]] = "stablehlo.case"(%[[ARG0]]) ({
    %1 = "stablehlo.case"(%n) ({
      // CHECK-NEXT: %[[V3:.*]] = stablehlo.add %[[ARG3]], %[[ARG4]] {mhlo.frontend_attributes = {k = "v", l = "w"}} : tensor<f32>
      %2 = stablehlo.add %a, %b : tensor<f32>
      // CHECK-NEXT: %[[V4:.*]] = func.call @g(%[[V3]]) {mhlo.frontend_attributes = {k = "v", l = "w"}} : (tensor<f32>) -> tensor<f32>
      %3 = func.call @g(%2) : (tensor<f32>) -> tensor<f32>
      // CHECK-NEXT: stablehlo.return %[[V4]] : tensor<f32>
      stablehlo.return %3 : tensor<f32>
    // CHECK-NEXT: }) {mhlo.frontend_attributes = {k = "v", l = "w"}} : (tensor<i32>) -> tensor<f32>
    }) : (tensor<i32>) -> tensor<f32>
    // CHECK-NEXT: stablehlo.return %[[V2]] : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  // CHECK-NEXT: }
  }) {mhlo.frontend_attributes = {_new_key = "2", xla_other = "3", l = "w"}} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: %[[V1:.*]]:2 = stablehlo.while(%[[ITERARG:.*]] = %[[ARG0]], %[[ITERARG_0:.*]] = %[[V0]]) : tensor<i32>, tensor<f32> attributes {mhlo.frontend_attributes = {MUST_FUSE = "1", k = "v"}}
  %4:2 = stablehlo.while(%a = %n, %b = %0) : tensor<i32>, tensor<f32>
  // CHECK-NEXT: cond {
  cond {
    // CHECK-NEXT: %[[V2]] = stablehlo.compare LT, %[[ITERARG]], %[[ITERARG]] {mhlo.frontend_attributes = {k = "v"}} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %5 = stablehlo.compare LT, %a, %a : (tensor<i32>, tensor<i32>) -> tensor<i1>
    // CHECK-NEXT: stablehlo.return %[[V2]] : tensor<i1>
    stablehlo.return %5 : tensor<i1>
  // CHECK-NEXT: } do {
  } do {
    // CHECK-NEXT: %[[V2]] = stablehlo.sine %[[ITERARG_0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
    %5 = stablehlo.sine %b : tensor<f32>
    // CHECK-NEXT: stablehlo.return %[[ITERARG]], %[[V2]] : tensor<i32>, tensor<f32>
    stablehlo.return %a, %5 : tensor<i32>, tensor<f32>
  // CHECK-NEXT: }
  }
  // CHECK-NEXT: return %[[V1]]#1 : tensor<f32>
  return %4#1 : tensor<f32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @g(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func private @g(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.negate %[[ARG0]] {mhlo.frontend_attributes = {k = "v", l = "w"}} : tensor<f32>
  %0 = stablehlo.negate %x : tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  return %0 : tensor<f32>
// CHECK-NEXT: }
}

// -----

// A nested module has symbols of its own, and inherits nothing.
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f(%x) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x : tensor<f32>
  return %0 : tensor<f32>
}
module @inner {
  // CHECK-LABEL: func.func public @main(
  // CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
  func.func public @main(%x: tensor<f32>) -> tensor<f32> {
    // CHECK-NEXT: %[[V0:.*]] = call @f(%[[ARG0]]) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
    %0 = call @f(%x) {mhlo.frontend_attributes = {k = "w"}} : (tensor<f32>) -> tensor<f32>
    // CHECK-NEXT: return %[[V0]] : tensor<f32>
    return %0 : tensor<f32>
  // CHECK-NEXT: }
  }
  // CHECK-LABEL: func.func private @f(
  // CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  // CHECK-NEXT: }
  func.func private @f(%x: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.cosine %x : tensor<f32>
    return %0 : tensor<f32>
  }
// CHECK: module @inner {
// CHECK-LABEL: func.func public @main(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
// CHECK-NEXT: %[[V0:.*]] = call @f(%[[ARG0]]) {mhlo.frontend_attributes = {k = "w"}} : (tensor<f32>) -> tensor<f32>
// CHECK-NEXT: return %[[V0]] : tensor<f32>
// CHECK-NEXT: }
// CHECK-LABEL: func.func private @f(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
// CHECK-NEXT: %[[V0:.*]] = stablehlo.cosine %[[ARG0]] : tensor<f32>
// CHECK-NEXT: return %[[V0]] : tensor<f32>
// CHECK-NEXT: }
}
