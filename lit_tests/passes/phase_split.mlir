// SPDX-License-Identifier: Apache-2.0
// Functions that both phases call: the backward pass gets a copy where its entries differ, by marks or by rules.
// RUN: hlotag-opt %s --hlotag-resolve | FileCheck %s --check-prefixes=CHECK,MARKS --implicit-check-not=frontend_attributes
// RUN: hlotag-opt %s --hlotag-resolve --hlotag-resolve | FileCheck %s --check-prefixes=CHECK,MARKS --implicit-check-not=frontend_attributes
// RUN: hlotag-opt %s --pass-pipeline='hlotag-resolve,hlotag-attach{rules="[{op = \"cosine\", attrs = {r = \"f\"}, grad = {r = \"b\"}}, {op = \"abs\", attrs = {s = \"v\"}}]"},hlotag-verify' | FileCheck %s --check-prefixes=CHECK,RULES --implicit-check-not=frontend_attributes
// RUN: hlotag-opt %s --pass-pipeline='hlotag-resolve,hlotag-attach{rules="[{op = \"cosine\", attrs = {r = \"f\"}, grad = {r = \"b\"}}, {op = \"abs\", attrs = {s = \"v\"}}]"},hlotag-verify,hlotag-attach{rules="[{op = \"cosine\", attrs = {r = \"f\"}, grad = {r = \"b\"}}, {op = \"abs\", attrs = {s = \"v\"}}]"},hlotag-verify' | FileCheck %s --check-prefixes=CHECK,RULES --implicit-check-not=frontend_attributes

module attributes {hlotag.tags = [{forward = {k = "f"}, derived = {k = "b"}}, {forward = {l = "v"}, derived = {l = "v"}}]} {
  // CHECK-LABEL: func.func public @main
  func.func public @main(%x: tensor<f32>) -> tensor<f32> {
    // CHECK: call @outer(%arg0)
    %0 = call @outer(%x) : (tensor<f32>) -> tensor<f32> loc("jit(f)/jvp(a)/jit(outer)")
    // CHECK: call @outer_0(%0)
    %1 = call @outer(%0) : (tensor<f32>) -> tensor<f32> loc("jit(f)/transpose(jvp(a))/jit(outer)")
    // CHECK: call @outer_0(%1)
    %2 = call @outer(%1) : (tensor<f32>) -> tensor<f32> loc("jit(f)/transpose(jvp(b))/jit(outer)")
    // CHECK: call @ruled(%2)
    %3 = call @ruled(%2) : (tensor<f32>) -> tensor<f32> loc("jit(f)/jvp(a)/jit(ruled)")
    // MARKS: call @ruled(%3)
    // RULES: call @ruled_0(%3)
    %4 = call @ruled(%3) : (tensor<f32>) -> tensor<f32> loc("jit(f)/transpose(jvp(a))/jit(ruled)")
    // The same entries in both phases need no copy.
    // CHECK: call @same(%4)
    %5 = call @same(%4) : (tensor<f32>) -> tensor<f32> loc("jit(f)/jvp(a)/jit(same)")
    // CHECK: call @same(%5)
    %6 = call @same(%5) : (tensor<f32>) -> tensor<f32> loc("jit(f)/transpose(jvp(a))/jit(same)")
    return %6 : tensor<f32>
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
    %0 = stablehlo.sine %x : tensor<f32> loc("\01hlotag#0\01/sin")
    return %0 : tensor<f32>
  }
  // CHECK-LABEL: func.func private @ruled(
  // MARKS: stablehlo.cosine %arg0 : tensor
  // RULES: stablehlo.cosine {{.*}}r = "f"
  // RULES-LABEL: func.func private @ruled_0(
  // RULES: stablehlo.cosine {{.*}}r = "b"
  func.func private @ruled(%x: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.cosine %x : tensor<f32> loc("cos")
    return %0 : tensor<f32>
  }
  // CHECK-LABEL: func.func private @same(
  // CHECK: stablehlo.tanh {{.*}}l = "v"
  // RULES: stablehlo.abs {{.*}}s = "v"
  // CHECK-NOT: @same_0
  func.func private @same(%x: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.tanh %x : tensor<f32> loc("\01hlotag#1\01/tanh")
    %1 = stablehlo.abs %0 : tensor<f32> loc("abs")
    return %1 : tensor<f32>
  }
}
