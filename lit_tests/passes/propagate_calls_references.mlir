// SPDX-License-Identifier: Apache-2.0
// Without StableHLO, mlir-opt does not see what its operations refer to, and takes one with a region for a symbol table.
// UNSUPPORTED: mlir-opt
// RUN: hlotag-opt %s --hlotag-propagate-calls --split-input-file | FileCheck %s
// RUN: hlotag-opt %s --hlotag-propagate-calls --hlotag-propagate-calls --split-input-file | FileCheck %s

// A public function, and one that something other than a call refers to, stay as they are.
// CHECK-LABEL: func.func public @main
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  // CHECK: call @api_0(%arg0)
  %0 = call @api(%x) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  // CHECK: call @used_0(%0)
  %1 = call @used(%0) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  // CHECK: custom_call @target{{.*}}called_computations = [@used]
  %2 = stablehlo.custom_call @target(%1) {called_computations = [@used]} : (tensor<f32>) -> tensor<f32>
  // CHECK: call @part_0(%2)
  %3 = call @part(%2) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  // CHECK: stablehlo.composite "my.op" {{.*}}decomposition = @part}
  %4 = stablehlo.composite "my.op" %3 {decomposition = @part} : (tensor<f32>) -> tensor<f32>
  return %4 : tensor<f32>
}
// CHECK-LABEL: func.func public @api(
// CHECK: stablehlo.sine %arg0 : tensor<f32>
// CHECK-LABEL: func.func private @api_0(
// CHECK: stablehlo.sine {{.*}}k = "v"
func.func public @api(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x : tensor<f32>
  return %0 : tensor<f32>
}
// CHECK-LABEL: func.func private @used(
// CHECK: stablehlo.sine %arg0 : tensor<f32>
// CHECK-LABEL: func.func private @used_0(
func.func private @used(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x : tensor<f32>
  return %0 : tensor<f32>
}
// CHECK-LABEL: func.func private @part(
// CHECK: stablehlo.sine %arg0 : tensor<f32>
// CHECK-LABEL: func.func private @part_0(
func.func private @part(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x : tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Functions that only dead code calls stay as they are; calls in regions count like others.
// CHECK-LABEL: func.func public @main
func.func public @main(%i: tensor<i32>, %x: tensor<f32>) -> tensor<f32> {
  %0 = "stablehlo.case"(%i) ({
    // CHECK: func.call @g_0(%arg1)
    %1 = func.call @g(%x) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<i32>) -> tensor<f32>
  return %0 : tensor<f32>
}
// CHECK-LABEL: func.func private @dead(
// CHECK: call @g(%0) : (tensor<f32>)
func.func private @dead(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @dead(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @g(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
// CHECK-LABEL: func.func private @g(
// CHECK: stablehlo.sine %arg0 : tensor<f32>
func.func private @g(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x : tensor<f32>
  return %0 : tensor<f32>
}
