// SPDX-License-Identifier: Apache-2.0
// A pass in the middle fails: the error with its place, no output, status 1.
// RUN: not hlotag-opt %s --hlotag-strip --hlotag-resolve --cse 2>&1 | FileCheck %s --implicit-check-not=stablehlo.sine
// RUN: not hlotag-opt %s --hlotag-strip --hlotag-resolve --mlir-print-ir-after-failure 2>&1 | FileCheck %s --check-prefix=PRINT

// CHECK: {{.*}}failure.mlir:[[#@LINE+8]]:1: error: 'hlotag.tags' must be an array
// CHECK-NEXT: module attributes {hlotag.tags
// CHECK-NEXT: {{^}}^

// What the failing pass left, with the changes of the ones before.
// PRINT: // -----// IR Dump After hlotag-resolve Failed //----- //
// PRINT: stablehlo.sine %arg0 : tensor<f32>
// PRINT: error: 'hlotag.tags' must be an array
module attributes {hlotag.tags = 3 : i32} {
  func.func @f(%x: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.sine %x {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
    return %0 : tensor<f32>
  }
}
