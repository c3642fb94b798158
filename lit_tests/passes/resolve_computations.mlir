// SPDX-License-Identifier: Apache-2.0
// A key that XLA reads is for the operations of one computation: a mark of a loop or branch gives it to that operation alone, and
// other keys to all that is in it. A mark within, the same one again too, gives it to what is there.
// RUN: hlotag-opt %s --hlotag-resolve | FileCheck %s --implicit-check-not=frontend_attributes

module attributes {hlotag.tags = [{entries = {MUST_FUSE = "1", k = "v"}}, {entries = {_any = "2"}}]} {
  // CHECK-LABEL: func.func public @main(
  // CHECK-SAME: %[[ARG0:.*]]: tensor<i32>, %[[ARG1:.*]]: tensor<f32>) -> tensor<f32> {
  func.func public @main(%i: tensor<i32>, %x: tensor<f32>) -> tensor<f32> {
    // CHECK-NEXT: %[[V0:.*]] = "stablehlo.case"(%[[ARG0]]) ({
    %0 = "stablehlo.case"(%i) ({
      // CHECK-NEXT: %[[V2:.*]] = stablehlo.sine %[[ARG1]] {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
      %1 = stablehlo.sine %x : tensor<f32> loc("f/\01hlotag#0\01/cond/branch/sin")
      // CHECK-NEXT: %[[V3:.*]] = stablehlo.cosine %[[V2]] {mhlo.frontend_attributes = {MUST_FUSE = "1", k = "v"}} : tensor<f32>
      %2 = stablehlo.cosine %1 : tensor<f32> loc("f/\01hlotag#0\01/cond/branch/\01hlotag#0\01/cos")
      // CHECK-NEXT: %[[V4:.*]] = "stablehlo.case"(%[[ARG0]]) ({
      %3 = "stablehlo.case"(%i) ({
        // CHECK-NEXT: %[[V5:.*]] = stablehlo.tanh %[[ARG1]] {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
        %4 = stablehlo.tanh %x : tensor<f32> loc("f/\01hlotag#0\01/cond/branch/\01hlotag#1\01/cond/branch/tanh")
        // CHECK-NEXT: %[[V6:.*]] = stablehlo.negate %[[V5]] {mhlo.frontend_attributes = {_any = "2", k = "v"}} : tensor<f32>
        %5 = stablehlo.negate %4 : tensor<f32> loc("f/\01hlotag#0\01/cond/branch/\01hlotag#1\01/cond/branch/\01hlotag#1\01/neg")
        // CHECK-NEXT: stablehlo.return %[[V6]] : tensor<f32>
        stablehlo.return %5 : tensor<f32>
      // CHECK-NEXT: }) {mhlo.frontend_attributes = {_any = "2", k = "v"}} : (tensor<i32>) -> tensor<f32>
      }) : (tensor<i32>) -> tensor<f32> loc("f/\01hlotag#0\01/cond/branch/\01hlotag#1\01/cond")
      // CHECK-NEXT: stablehlo.return %[[V4]] : tensor<f32>
      stablehlo.return %3 : tensor<f32>
    // CHECK-NEXT: }) {mhlo.frontend_attributes = {MUST_FUSE = "1", k = "v"}} : (tensor<i32>) -> tensor<f32>
    }) : (tensor<i32>) -> tensor<f32> loc("f/\01hlotag#0\01/cond")
    // CHECK-NEXT: %[[V1:.*]] = stablehlo.abs %[[V0]] {mhlo.frontend_attributes = {MUST_FUSE = "1", k = "v"}} : tensor<f32>
    %6 = stablehlo.abs %0 : tensor<f32> loc("f/\01hlotag#0\01/abs")
    // CHECK-NEXT: return %[[V1]] : tensor<f32>
    return %6 : tensor<f32>
  // CHECK-NEXT: }
  }
}
