// SPDX-License-Identifier: Apache-2.0
// Functions that both phases call: the backward pass gets a copy where a rule gives it other entries.
// RUN: hlotag-opt %s --hlotag-attach='rules="[{op = \"sine\", attrs = {k = \"f\"}, grad = {k = \"b\"}}, {op = \"tanh\", attrs = {l = \"v\"}}]"' --hlotag-finalize | FileCheck %s --implicit-check-not=frontend_attributes
// A second run finds nothing to do.
// RUN: hlotag-opt %s --hlotag-attach='rules="[{op = \"sine\", attrs = {k = \"f\"}, grad = {k = \"b\"}}, {op = \"tanh\", attrs = {l = \"v\"}}]"' --hlotag-attach='rules="[{op = \"sine\", attrs = {k = \"f\"}, grad = {k = \"b\"}}, {op = \"tanh\", attrs = {l = \"v\"}}]"' --hlotag-finalize | FileCheck %s --implicit-check-not=frontend_attributes

module {
  // CHECK-LABEL: func.func public @main
  func.func public @main(%x: tensor<f32>) -> tensor<f32> {
    // CHECK: call @outer(%arg0)
    %0 = call @outer(%x) : (tensor<f32>) -> tensor<f32> loc("jit(f)/jvp(a)/jit(outer)")
    // CHECK: call @outer_0(%0)
    %1 = call @outer(%0) : (tensor<f32>) -> tensor<f32> loc("jit(f)/transpose(jvp(a))/jit(outer)")
    // CHECK: call @outer_0(%1)
    %2 = call @outer(%1) : (tensor<f32>) -> tensor<f32> loc("jit(f)/transpose(jvp(b))/jit(outer)")
    // The same entries in both phases need no copy.
    // CHECK: call @same(%2)
    %3 = call @same(%2) : (tensor<f32>) -> tensor<f32> loc("jit(f)/jvp(a)/jit(same)")
    // CHECK: call @same(%3)
    %4 = call @same(%3) : (tensor<f32>) -> tensor<f32> loc("jit(f)/transpose(jvp(a))/jit(same)")
    return %4 : tensor<f32>
  }
  // What it calls is of the phase it is called in.
  // CHECK-LABEL: func.func private @outer(
  // CHECK: call @inner(%arg0)
  // CHECK-LABEL: func.func private @outer_0(
  // CHECK: call @inner_0(%arg0)
  func.func private @outer(%x: tensor<f32>) -> tensor<f32> {
    %0 = call @inner(%x) : (tensor<f32>) -> tensor<f32> loc("jit(inner)")
    return %0 : tensor<f32>
  }
  // CHECK-LABEL: func.func private @inner(
  // CHECK: stablehlo.sine {{.*}}k = "f"
  // CHECK-LABEL: func.func private @inner_0(
  // CHECK: stablehlo.sine {{.*}}k = "b"
  func.func private @inner(%x: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.sine %x : tensor<f32> loc("sin")
    return %0 : tensor<f32>
  }
  // CHECK-LABEL: func.func private @same(
  // CHECK: stablehlo.tanh {{.*}}l = "v"
  // CHECK-NOT: @same_0
  func.func private @same(%x: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.tanh %x : tensor<f32> loc("tanh")
    return %0 : tensor<f32>
  }
}
