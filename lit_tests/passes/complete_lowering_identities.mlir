// SPDX-License-Identifier: Apache-2.0
// Under mlir-opt each pass runs by itself, so that identities, which passes hand on in a run, are gone.
// UNSUPPORTED: mlir-opt
// RUN: hlotag-opt %s --hlotag-resolve --hlotag-complete-lowering | FileCheck %s --implicit-check-not=hlotag
// A second run in the same pipeline finds nothing to do.
// RUN: hlotag-opt %s --hlotag-resolve --hlotag-complete-lowering --hlotag-complete-lowering \
// RUN:   | FileCheck %s --implicit-check-not=hlotag

// `for ...: x = f(x)`: a helper is of the equation that its operation is of, be it a call or of the same kind; what the round
// before made is not.
// CHECK-LABEL: func.func public @loop
module attributes {hlotag.tags = [{forward = {}, derived = {}}]} {
  func.func public @loop(%x: tensor<f32>) -> tensor<f32> {
    // CHECK-NEXT: stablehlo.multiply %arg0, %arg0 {mhlo.frontend_attributes = {k = "0"}}
    %0 = stablehlo.multiply %x, %x : tensor<f32> loc("jit(f)/jvp(\01hlotag#0:0e\01)/mul")
    // CHECK-NEXT: call @inner(%0) {mhlo.frontend_attributes = {k = "0"}}
    %1 = func.call @inner(%0) : (tensor<f32>) -> tensor<f32> loc("jit(f)/jvp(\01hlotag#0:0e\01)/mul")
    // CHECK-NEXT: stablehlo.multiply %1, %0 {mhlo.frontend_attributes = {k = "0"}}
    %2 = stablehlo.multiply %1, %0 {mhlo.frontend_attributes = {k = "0"}} : tensor<f32> loc("jit(f)/jvp(\01hlotag#0:0e\01)/mul")
    // CHECK-NEXT: stablehlo.exponential %2 : tensor<f32>
    %3 = stablehlo.exponential %2 : tensor<f32> loc("jit(f)/jvp(\01hlotag#0:0e\01)/mul")
    // CHECK-NEXT: stablehlo.multiply %3, %3 {mhlo.frontend_attributes = {k = "1"}}
    %4 = stablehlo.multiply %3, %3 {mhlo.frontend_attributes = {k = "1"}} : tensor<f32> loc("jit(f)/jvp(\01hlotag#0:1e\01)/mul")
    return %4 : tensor<f32>
  }
  func.func private @inner(%x: tensor<f32>) -> tensor<f32> {
    return %x : tensor<f32>
  }
}
