// SPDX-License-Identifier: Apache-2.0
// Without StableHLO, mlir-opt does not see what its operations refer to, and takes one with a region for a symbol table.
// UNSUPPORTED: mlir-opt
// RUN: hlotag-opt %s --hlotag-propagate-calls --split-input-file | FileCheck %s
// RUN: hlotag-opt %s --hlotag-propagate-calls --hlotag-propagate-calls --split-input-file | FileCheck %s

// A public function, and one that is called without entries too, stay as they are.
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

// -----

// Composites and custom calls are calls: each hands its entries to what it calls, and to nothing that others call.
// CHECK-LABEL: func.func public @main
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  // CHECK: custom_call @target{{.*}}called_computations = [@gt_0, @only, @gt_0]{{.*}}k = "v"
  %0 = stablehlo.custom_call @target(%x) {called_computations = [@gt, @only, @gt], mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  // CHECK: custom_call @target{{.*}}called_computations = [@gt]
  %1 = stablehlo.custom_call @target(%0) {called_computations = [@gt]} : (tensor<f32>) -> tensor<f32>
  // CHECK: composite "my.op" {{.*}}decomposition = @part_0
  %2 = stablehlo.composite "my.op" %1 {decomposition = @part, mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  // CHECK: composite "my.op" {{.*}}decomposition = @part}
  %3 = stablehlo.composite "my.op" %2 {decomposition = @part} : (tensor<f32>) -> tensor<f32>
  return %3 : tensor<f32>
}
// CHECK-LABEL: func.func private @gt(
// CHECK: stablehlo.compare GT, %arg0, %arg1 :
// CHECK-LABEL: func.func private @gt_0(
// CHECK: stablehlo.compare GT, %arg0, %arg1 {mhlo.frontend_attributes = {k = "v"}}
func.func private @gt(%x: tensor<f32>, %y: tensor<f32>) -> tensor<i1> {
  %0 = stablehlo.compare GT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}
// CHECK-LABEL: func.func private @only(
// CHECK: stablehlo.compare LT, %arg0, %arg1 {mhlo.frontend_attributes = {k = "v"}}
func.func private @only(%x: tensor<f32>, %y: tensor<f32>) -> tensor<i1> {
  %0 = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}
// What the decomposition calls is reached through it.
// CHECK-LABEL: func.func private @part(
// CHECK: custom_call @target{{.*}}called_computations = [@deep]}
// CHECK-LABEL: func.func private @part_0(
// CHECK: custom_call @target{{.*}}called_computations = [@deep_0]{{.*}}k = "v"
func.func private @part(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.custom_call @target(%x) {called_computations = [@deep]} : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
// CHECK-LABEL: func.func private @deep(
// CHECK: compare EQ, %arg0, %arg1 :
// CHECK-LABEL: func.func private @deep_0(
// CHECK: compare EQ, {{.*}}k = "v"
func.func private @deep(%x: tensor<f32>, %y: tensor<f32>) -> tensor<i1> {
  %0 = stablehlo.compare EQ, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}

// -----

// What only names a function, at any depth of an attribute, may enter it without the entries of its calls.
// CHECK-LABEL: func.func public @main
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  // CHECK: call @named_0(%arg0)
  %0 = call @named(%x) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  // CHECK: custom_call @target{{.*}}my.functions = [{f = @named}]
  %1 = stablehlo.custom_call @target(%0) {my.functions = [{f = @named}]} : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
// CHECK-LABEL: func.func private @named(
// CHECK-NEXT: stablehlo.sine %arg0 : tensor<f32>
// CHECK-LABEL: func.func private @named_0(
// CHECK-NEXT: stablehlo.sine {{.*}}k = "v"
func.func private @named(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x : tensor<f32>
  return %0 : tensor<f32>
}
