// SPDX-License-Identifier: Apache-2.0
// The body of a reduction is part of it; the body of a loop or branch has operations of its own.
// RUN: hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{op = \"*\", attrs = {k = \"v\"}}]"}' | FileCheck %s

// CHECK-LABEL: @reduction
// CHECK: stablehlo.reduce
// CHECK-NOT: stablehlo.{{add|abs}}{{.*}}k = "v"
// CHECK: stablehlo.return
func.func @reduction(%x: tensor<4xf32>, %c: tensor<f32>) -> tensor<f32> {
  %0 = "stablehlo.reduce"(%x, %c) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    %2 = stablehlo.abs %1 : tensor<f32>
    "stablehlo.return"(%2) : (tensor<f32>) -> ()
  }) {dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// CHECK-LABEL: @branch
// CHECK: stablehlo.sine{{.*}}k = "v"
func.func @branch(%i: tensor<i32>, %x: tensor<f32>) -> tensor<f32> {
  %0 = "stablehlo.case"(%i) ({
    %1 = stablehlo.sine %x : tensor<f32>
    "stablehlo.return"(%1) : (tensor<f32>) -> ()
  }) : (tensor<i32>) -> tensor<f32>
  return %0 : tensor<f32>
}
