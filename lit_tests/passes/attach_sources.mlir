// SPDX-License-Identifier: Apache-2.0
// Rules by file and line of the innermost frame. Without a file, no pattern is for an operation.
// RUN: hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{source = \"model.py:42\", attrs = {k = \"line\"}}, {source = \"other/model.py\", attrs = {k = \"file\"}}, {source = \"*\", attrs = {any = true}}]"}' | FileCheck %s --implicit-check-not=frontend_attributes

// CHECK-LABEL: func.func @sources(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func @sources(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {any = true, k = "line"}} : tensor<f32>
  %0 = stablehlo.sine %x : tensor<f32> loc("jit(f)/sin"("g"("/src/model.py":42:3)))
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.cosine %[[V0]] {mhlo.frontend_attributes = {any = true}} : tensor<f32>
  %1 = stablehlo.cosine %0 : tensor<f32> loc("jit(f)/cos"("g"("/src/model.py":420:3)))
  // CHECK-NEXT: %[[V2:.*]] = stablehlo.tanh %[[V1]] {mhlo.frontend_attributes = {any = true, k = "file"}} : tensor<f32>
  %2 = stablehlo.tanh %1 : tensor<f32> loc("jit(f)/tanh"("g"("/a/other/model.py":1:1)))
  // CHECK-NEXT: %[[V3:.*]] = stablehlo.abs %[[V2]] {mhlo.frontend_attributes = {any = true}} : tensor<f32>
  %3 = stablehlo.abs %2 : tensor<f32> loc("jit(f)/abs"("g"("/src/my_model.py":42:3)))
  // No file, so no pattern is for it.
  // CHECK-NEXT: %[[V4:.*]] = stablehlo.floor %[[V3]] : tensor<f32>
  %4 = stablehlo.floor %3 : tensor<f32> loc("jit(f)/floor")
  // CHECK-NEXT: return %[[V4]] : tensor<f32>
  return %4 : tensor<f32>
// CHECK-NEXT: }
}
