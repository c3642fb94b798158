// SPDX-License-Identifier: Apache-2.0
// Without StableHLO, mlir-opt does not see what its operations refer to, and takes one with a region for a symbol table.
// UNSUPPORTED: mlir-opt
// RUN: hlotag-opt %s --hlotag-propagate --split-input-file | FileCheck %s --implicit-check-not=frontend_attributes
// RUN: hlotag-opt %s --hlotag-propagate --hlotag-propagate --split-input-file | FileCheck %s --implicit-check-not=frontend_attributes

// A public function, and one that is called without entries too, stay as they are.
// CHECK-LABEL: func.func public @main(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = call @api_0(%[[ARG0]]) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  %0 = call @api(%x) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: %[[V1:.*]] = call @used_0(%[[V0]]) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  %1 = call @used(%0) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: %[[V2:.*]] = stablehlo.custom_call @target(%[[V1]]) {called_computations = [@used]} : (tensor<f32>) -> tensor<f32>
  %2 = stablehlo.custom_call @target(%1) {called_computations = [@used]} : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: %[[V3:.*]] = call @part_0(%[[V2]]) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  %3 = call @part(%2) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: %[[V4:.*]] = stablehlo.composite "my.op" %[[V3]] {decomposition = @part} : (tensor<f32>) -> tensor<f32>
  %4 = stablehlo.composite "my.op" %3 {decomposition = @part} : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: return %[[V4]] : tensor<f32>
  return %4 : tensor<f32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func public @api(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func public @api(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] : tensor<f32>
  %0 = stablehlo.sine %x : tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  return %0 : tensor<f32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @api_0(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
// CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
// CHECK-NEXT: return %[[V0]] : tensor<f32>
// CHECK-NEXT: }
// CHECK-LABEL: func.func private @used(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func private @used(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] : tensor<f32>
  %0 = stablehlo.sine %x : tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  return %0 : tensor<f32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @used_0(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
// CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
// CHECK-NEXT: return %[[V0]] : tensor<f32>
// CHECK-NEXT: }
// CHECK-LABEL: func.func private @part(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func private @part(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] : tensor<f32>
  %0 = stablehlo.sine %x : tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  return %0 : tensor<f32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @part_0(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
// CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
// CHECK-NEXT: return %[[V0]] : tensor<f32>
// CHECK-NEXT: }

// -----

// Functions that only dead code calls stay as they are; calls in regions count like others.
// CHECK-LABEL: func.func public @main(
// CHECK-SAME: %[[ARG0:.*]]: tensor<i32>, %[[ARG1:.*]]: tensor<f32>) -> tensor<f32> {
func.func public @main(%i: tensor<i32>, %x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = "stablehlo.case"(%[[ARG0]]) ({
  %0 = "stablehlo.case"(%i) ({
    // CHECK-NEXT: %[[V1:.*]] = func.call @g_0(%[[ARG1]]) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
    %1 = func.call @g(%x) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
    // CHECK-NEXT: stablehlo.return %[[V1]] : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  // CHECK-NEXT: }) : (tensor<i32>) -> tensor<f32>
  }) : (tensor<i32>) -> tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  return %0 : tensor<f32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @dead(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func private @dead(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = call @dead(%[[ARG0]]) : (tensor<f32>) -> tensor<f32>
  %0 = call @dead(%x) : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: %[[V1:.*]] = call @g(%[[V0]]) : (tensor<f32>) -> tensor<f32>
  %1 = call @g(%0) : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: return %[[V1]] : tensor<f32>
  return %1 : tensor<f32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @g(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func private @g(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] : tensor<f32>
  %0 = stablehlo.sine %x : tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  return %0 : tensor<f32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @g_0(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
// CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
// CHECK-NEXT: return %[[V0]] : tensor<f32>
// CHECK-NEXT: }

// -----

// Composites and custom calls are calls: each hands its entries to what it calls, and to nothing that others call.
// CHECK-LABEL: func.func public @main(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.custom_call @target(%[[ARG0]]) {called_computations = [@gt_0, @only, @gt_0], mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  %0 = stablehlo.custom_call @target(%x) {called_computations = [@gt, @only, @gt], mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.custom_call @target(%[[V0]]) {called_computations = [@gt]} : (tensor<f32>) -> tensor<f32>
  %1 = stablehlo.custom_call @target(%0) {called_computations = [@gt]} : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: %[[V2:.*]] = stablehlo.composite "my.op" %[[V1]] {decomposition = @part_0, mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  %2 = stablehlo.composite "my.op" %1 {decomposition = @part, mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: %[[V3:.*]] = stablehlo.composite "my.op" %[[V2]] {decomposition = @part} : (tensor<f32>) -> tensor<f32>
  %3 = stablehlo.composite "my.op" %2 {decomposition = @part} : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: return %[[V3]] : tensor<f32>
  return %3 : tensor<f32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @gt(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>, %[[ARG1:.*]]: tensor<f32>) -> tensor<i1> {
func.func private @gt(%x: tensor<f32>, %y: tensor<f32>) -> tensor<i1> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.compare GT, %[[ARG0]], %[[ARG1]] : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %0 = stablehlo.compare GT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
  // CHECK-NEXT: return %[[V0]] : tensor<i1>
  return %0 : tensor<i1>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @gt_0(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>, %[[ARG1:.*]]: tensor<f32>) -> tensor<i1> {
// CHECK-NEXT: %[[V0:.*]] = stablehlo.compare GT, %[[ARG0]], %[[ARG1]] {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>, tensor<f32>) -> tensor<i1>
// CHECK-NEXT: return %[[V0]] : tensor<i1>
// CHECK-NEXT: }
// CHECK-LABEL: func.func private @only(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>, %[[ARG1:.*]]: tensor<f32>) -> tensor<i1> {
func.func private @only(%x: tensor<f32>, %y: tensor<f32>) -> tensor<i1> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.compare LT, %[[ARG0]], %[[ARG1]] {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %0 = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
  // CHECK-NEXT: return %[[V0]] : tensor<i1>
  return %0 : tensor<i1>
// CHECK-NEXT: }
}
// What the decomposition calls is reached through it.
// CHECK-LABEL: func.func private @part(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func private @part(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.custom_call @target(%[[ARG0]]) {called_computations = [@deep]} : (tensor<f32>) -> tensor<f32>
  %0 = stablehlo.custom_call @target(%x) {called_computations = [@deep]} : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  return %0 : tensor<f32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @part_0(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
// CHECK-NEXT: %[[V0:.*]] = stablehlo.custom_call @target(%[[ARG0]]) {called_computations = [@deep_0], mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
// CHECK-NEXT: return %[[V0]] : tensor<f32>
// CHECK-NEXT: }
// CHECK-LABEL: func.func private @deep(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>, %[[ARG1:.*]]: tensor<f32>) -> tensor<i1> {
func.func private @deep(%x: tensor<f32>, %y: tensor<f32>) -> tensor<i1> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.compare EQ, %[[ARG0]], %[[ARG1]] : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %0 = stablehlo.compare EQ, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
  // CHECK-NEXT: return %[[V0]] : tensor<i1>
  return %0 : tensor<i1>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @deep_0(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>, %[[ARG1:.*]]: tensor<f32>) -> tensor<i1> {
// CHECK-NEXT: %[[V0:.*]] = stablehlo.compare EQ, %[[ARG0]], %[[ARG1]] {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>, tensor<f32>) -> tensor<i1>
// CHECK-NEXT: return %[[V0]] : tensor<i1>
// CHECK-NEXT: }

// -----

// What only names a function, at any depth of an attribute, may enter it without the entries of its calls.
// CHECK-LABEL: func.func public @main(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = call @named_0(%[[ARG0]]) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  %0 = call @named(%x) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.custom_call @target(%[[V0]]) {my.functions = [{f = @named}]} : (tensor<f32>) -> tensor<f32>
  %1 = stablehlo.custom_call @target(%0) {my.functions = [{f = @named}]} : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: return %[[V1]] : tensor<f32>
  return %1 : tensor<f32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @named(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func private @named(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] : tensor<f32>
  %0 = stablehlo.sine %x : tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  return %0 : tensor<f32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @named_0(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
// CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
// CHECK-NEXT: return %[[V0]] : tensor<f32>
// CHECK-NEXT: }

// -----

// What attributes of the module, of functions and of unknown operations name may run without being called.
// CHECK: module attributes {foo.entry = @of_module} {
module attributes {foo.entry = @of_module} {
  // CHECK-LABEL: func.func public @main(
  // CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> attributes {foo.uses = {list = [@of_function]}} {
  func.func public @main(%x: tensor<f32>) -> tensor<f32> attributes {foo.uses = {list = [@of_function]}} {
    // CHECK-NEXT: %[[V0:.*]] = call @of_module_0(%[[ARG0]]) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
    %0 = call @of_module(%x) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
    // CHECK-NEXT: %[[V1:.*]] = call @of_function_0(%[[V0]]) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
    %1 = call @of_function(%0) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
    // CHECK-NEXT: %[[V2:.*]] = call @of_unknown_0(%[[V1]]) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
    %2 = call @of_unknown(%1) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
    // CHECK-NEXT: %[[V3:.*]] = mhlo.custom_call @t(%[[V2]]) {foo.uses = @of_unknown} : (tensor<f32>) -> tensor<f32>
    %3 = "mhlo.custom_call"(%2) {call_target_name = "t", foo.uses = @of_unknown} : (tensor<f32>) -> tensor<f32>
    // CHECK-NEXT: return %[[V3]] : tensor<f32>
    return %3 : tensor<f32>
  // CHECK-NEXT: }
  }
  // CHECK-LABEL: func.func private @of_module(
  // CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
  func.func private @of_module(%x: tensor<f32>) -> tensor<f32> {
    // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] : tensor<f32>
    %0 = stablehlo.sine %x : tensor<f32>
    // CHECK-NEXT: return %[[V0]] : tensor<f32>
    return %0 : tensor<f32>
  // CHECK-NEXT: }
  }
  // CHECK-LABEL: func.func private @of_module_0(
  // CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  // CHECK-NEXT: }
  // CHECK-LABEL: func.func private @of_function(
  // CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
  func.func private @of_function(%x: tensor<f32>) -> tensor<f32> {
    // CHECK-NEXT: %[[V0:.*]] = stablehlo.cosine %[[ARG0]] : tensor<f32>
    %0 = stablehlo.cosine %x : tensor<f32>
    // CHECK-NEXT: return %[[V0]] : tensor<f32>
    return %0 : tensor<f32>
  // CHECK-NEXT: }
  }
  // CHECK-LABEL: func.func private @of_function_0(
  // CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.cosine %[[ARG0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  // CHECK-NEXT: }
  // CHECK-LABEL: func.func private @of_unknown(
  // CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
  func.func private @of_unknown(%x: tensor<f32>) -> tensor<f32> {
    // CHECK-NEXT: %[[V0:.*]] = stablehlo.tanh %[[ARG0]] : tensor<f32>
    %0 = stablehlo.tanh %x : tensor<f32>
    // CHECK-NEXT: return %[[V0]] : tensor<f32>
    return %0 : tensor<f32>
  // CHECK-NEXT: }
  }
// CHECK-LABEL: func.func private @of_unknown_0(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
// CHECK-NEXT: %[[V0:.*]] = stablehlo.tanh %[[ARG0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
// CHECK-NEXT: return %[[V0]] : tensor<f32>
// CHECK-NEXT: }
}

// -----

// MHLO's operations are those of StableHLO: a custom call calls, and a return gets nothing.
// CHECK-LABEL: func.func public @main(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = mhlo.custom_call @t(%[[ARG0]]) {called_computations = [@f_0], mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  %0 = "mhlo.custom_call"(%x) {call_target_name = "t", called_computations = [@f], mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: %[[V1:.*]] = mhlo.custom_call @t(%[[V0]]) {called_computations = [@f]} : (tensor<f32>) -> tensor<f32>
  %1 = "mhlo.custom_call"(%0) {call_target_name = "t", called_computations = [@f]} : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: return %[[V1]] : tensor<f32>
  return %1 : tensor<f32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @f(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] : tensor<f32>
  %0 = stablehlo.sine %x : tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  return %0 : tensor<f32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @f_0(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
// CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
// CHECK-NEXT: return %[[V0]] : tensor<f32>
// CHECK-NEXT: }
