// SPDX-License-Identifier: Apache-2.0
// What a reduction applies gets no key that XLA reads, of the program or of a rule. Nor does a function that only reductions
// call; one that is called from elsewhere too does.
// Without StableHLO, mlir-opt takes an operation with a region for a symbol table.
// UNSUPPORTED: mlir-opt
// RUN: hlotag-opt %s --hlotag-resolve --split-input-file | FileCheck %s --implicit-check-not=frontend_attributes

module attributes {hlotag.rules = [{name = "rule 1", text = "t"}],
    hlotag.tags = [{entries = {MUST_FUSE = "1", k = "v", _any = "2"},
                    rules = [{rule = "0", entries = {FUSE_LIMIT = "4", l = "w"}}]}]} {
  // CHECK-LABEL: func.func public @main(
  // CHECK-SAME: %[[ARG0:.*]]: tensor<4xf32>, %[[ARG1:.*]]: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.reduce(%[[ARG0]] init: %[[ARG1]]) across dimensions = [0] {mhlo.frontend_attributes = {FUSE_LIMIT = "4", MUST_FUSE = "1", _any = "2", k = "v", l = "w"}} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: reducer(%[[ARG2:.*]]: tensor<f32>, %[[ARG3:.*]]: tensor<f32>)  {
  // CHECK-NEXT: %[[V2:.*]] = stablehlo.add %[[ARG2]], %[[ARG3]] {mhlo.frontend_attributes = {k = "v", l = "w"}} : tensor<f32>
  // CHECK-NEXT: %[[V3:.*]] = func.call @applied(%[[V2]]) : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: %[[V4:.*]] = func.call @shared(%[[V3]]) : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: stablehlo.return %[[V4]] : tensor<f32>
  // CHECK-NEXT: }
  // CHECK-NEXT: %[[V1:.*]] = call @shared(%[[V0]]) : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: return %[[V1]] : tensor<f32>
  // CHECK-NEXT: }
  func.func public @main(%x: tensor<4xf32>, %z: tensor<f32>) -> tensor<f32> {
    %0 = "stablehlo.reduce"(%x, %z) <{dimensions = array<i64: 0>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32> loc("f/\01hlotag#0\01/add")
      %2 = func.call @applied(%1) : (tensor<f32>) -> tensor<f32>
      %3 = func.call @shared(%2) : (tensor<f32>) -> tensor<f32>
      stablehlo.return %3 : tensor<f32>
    }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32> loc("f/\01hlotag#0\01/reduce")
    %4 = func.call @shared(%0) : (tensor<f32>) -> tensor<f32>
    return %4 : tensor<f32>
  }
  // CHECK-LABEL: func.func private @applied(
  // CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = call @inner(%[[ARG0]]) : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.sine %[[V0]] {mhlo.frontend_attributes = {k = "v", l = "w"}} : tensor<f32>
  // CHECK-NEXT: return %[[V1]] : tensor<f32>
  // CHECK-NEXT: }
  func.func private @applied(%x: tensor<f32>) -> tensor<f32> {
    %0 = func.call @inner(%x) : (tensor<f32>) -> tensor<f32>
    %1 = stablehlo.sine %0 : tensor<f32> loc("f/\01hlotag#0\01/sin")
    return %1 : tensor<f32>
  }
  // CHECK-LABEL: func.func private @inner(
  // CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
  func.func private @inner(%x: tensor<f32>) -> tensor<f32> {
    // CHECK-NEXT: %[[V0:.*]] = stablehlo.negate %[[ARG0]] {mhlo.frontend_attributes = {k = "v", l = "w"}} : tensor<f32>
    %0 = stablehlo.negate %x : tensor<f32> loc("f/\01hlotag#0\01/neg")
    // CHECK-NEXT: return %[[V0]] : tensor<f32>
    return %0 : tensor<f32>
  // CHECK-NEXT: }
  }
  // CHECK-LABEL: func.func private @shared(
  // CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
  func.func private @shared(%x: tensor<f32>) -> tensor<f32> {
    // CHECK-NEXT: %[[V0:.*]] = stablehlo.cosine %[[ARG0]] {mhlo.frontend_attributes = {FUSE_LIMIT = "4", MUST_FUSE = "1", _any = "2", k = "v", l = "w"}} : tensor<f32>
    %0 = stablehlo.cosine %x : tensor<f32> loc("f/\01hlotag#0\01/cos")
    // CHECK-NEXT: return %[[V0]] : tensor<f32>
    return %0 : tensor<f32>
  // CHECK-NEXT: }
  }
}
