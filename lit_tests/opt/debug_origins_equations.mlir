// SPDX-License-Identifier: Apache-2.0
// Which equation each operation belongs to, where marks have identities: a derived one has the number of its forward one.
// RUN: hlotag-opt %s --debug-origins --hlotag-resolve --hlotag-verify | FileCheck %s
// RUN: hlotag-opt %s --hlotag-resolve --hlotag-verify | FileCheck %s --check-prefix=OFF --implicit-check-not=hlotag.equations

// OFF: stablehlo.sine
// CHECK-LABEL: func.func @f
module attributes {hlotag.tags = [{forward = {}, derived = {}}]} {
  func.func @f(%x: tensor<f32>) -> tensor<f32> {
    // CHECK-NEXT: stablehlo.sine %arg0 {hlotag.equations = "0"}
    %0 = stablehlo.sine %x : tensor<f32> loc("jit(f)/jvp(\01hlotag#0:7e\01)/sin")
    // CHECK-NEXT: call @g(%0) {hlotag.equations = "1"}
    %1 = func.call @g(%0) : (tensor<f32>) -> tensor<f32> loc("jit(f)/jvp(\01hlotag#0:3o.4j\01)/jit(g)")
    // Equations of a function are the same for all calls; calls in loops or checkpoints are told apart.
    // CHECK-NEXT: call @g(%1) {hlotag.equations = "2"}
    %2 = func.call @g(%1) : (tensor<f32>) -> tensor<f32> loc("jit(f)/jvp(\01hlotag#0:5o.4j\01)/jit(g)")
    // CHECK-NEXT: stablehlo.multiply %2, %0 {hlotag.equations = "2"}
    %3 = stablehlo.multiply %2, %0 : tensor<f32> loc("jit(f)/transpose(jvp(\01hlotag#0:5o.4j\01))/mul")
    // CHECK-NEXT: stablehlo.multiply %3, %0 {hlotag.equations = "0"}
    %4 = stablehlo.multiply %3, %0 : tensor<f32> loc("jit(f)/transpose(jvp(\01hlotag#0:7\01))/mul")
    // Its forward operation is gone.
    // CHECK-NEXT: stablehlo.abs %4 : tensor<f32>
    %5 = stablehlo.abs %4 : tensor<f32> loc("jit(f)/transpose(jvp(\01hlotag#0:9\01))/abs")
    return %5 : tensor<f32>
  }
  // CHECK-LABEL: func.func private @g
  func.func private @g(%x: tensor<f32>) -> tensor<f32> {
    // CHECK-NEXT: stablehlo.cosine %arg0 {hlotag.equations = "3"}
    %0 = stablehlo.cosine %x : tensor<f32> loc("jvp(\01hlotag#0:8e\01)/cos")
    return %0 : tensor<f32>
  }
}
