// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --hlotag-finalize --split-input-file --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --implicit-check-not=frontend_attributes
// RUN: hlotag-opt %s --hlotag-finalize --hlotag-finalize --split-input-file --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --implicit-check-not=frontend_attributes

// Escapes are replaced wherever a location has a name. What is no escape stays.
// CHECK: module @escaped {
module @escaped attributes {hlotag.escaped} {
  // CHECK-LABEL: func.func @f(
  // CHECK-SAME: %[[ARG0:.*]]: tensor<f32> loc(callsite("(" at fused["b", "c"(")"("f.py":1:2))]))) -> tensor<f32> {
  func.func @f(%x: tensor<f32> loc(callsite("\01%28" at fused["b", "c"("\01%29"("f.py":1:2))]))) -> tensor<f32> {
    // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] : tensor<f32> loc("jit(f)/transpose(x)/sin")
    %0 = stablehlo.sine %x : tensor<f32> loc("jit(f)/transpose\01%28x\01%29/sin")
    // CHECK-NEXT: %[[V1:.*]] = stablehlo.cosine %[[V0]] : tensor<f32> loc("\01hlotag#0\01/\01%28/%28/cos")
    %1 = stablehlo.cosine %0 : tensor<f32> loc("\01%01hlotag#0\01%01/\01%01%28/%28/cos")
    // CHECK-NEXT: %[[V2:.*]] = stablehlo.tanh %[[V1]] : tensor<f32> loc("\01%/\01%2/\01%zz/\01%")
    %2 = stablehlo.tanh %1 : tensor<f32> loc("\01%/\01%2/\01%zz/\01%")
    // CHECK-NEXT: return %[[V2]] : tensor<f32> loc({{"-":[0-9:]+}})
    return %2 : tensor<f32>
  // CHECK-NEXT: } loc({{"-":[0-9:]+}})
  }
// CHECK: } loc({{"-":[0-9:]+}})
}

// -----

// Without the attribute, text that looks like an escape or a mark is the user's.
// CHECK: module @plain {
module @plain {
  // CHECK-LABEL: func.func @f(
  // CHECK-SAME: %[[ARG0:.*]]: tensor<f32> loc({{"-":[0-9:]+}})) -> tensor<f32> {
  func.func @f(%x: tensor<f32>) -> tensor<f32> {
    // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] : tensor<f32> loc("a\01%28/\01hlotag#0\01/sin")
    %0 = stablehlo.sine %x : tensor<f32> loc("a\01%28/\01hlotag#0\01/sin")
    // CHECK-NEXT: return %[[V0]] : tensor<f32> loc({{"-":[0-9:]+}})
    return %0 : tensor<f32>
  // CHECK-NEXT: } loc({{"-":[0-9:]+}})
  }
// CHECK: } loc({{"-":[0-9:]+}})
}
