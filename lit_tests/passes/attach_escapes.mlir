// SPDX-License-Identifier: Apache-2.0
// What lowering has escaped is text of a scope.
// RUN: hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{scope = \"transpose(a)\", attrs = {k = \"s\"}}, {phase = \"backward\", attrs = {k = \"b\"}}]"}' | FileCheck %s --implicit-check-not=frontend_attributes

// CHECK-LABEL: func.func @escaped(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func @escaped(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {k = "s"}} : tensor<f32>
  %0 = stablehlo.sine %x : tensor<f32> loc("jit(f)/jvp(transpose\01%28a\01%29)/sin")
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.cosine %[[V0]] {mhlo.frontend_attributes = {k = "b"}} : tensor<f32>
  %1 = stablehlo.cosine %0 : tensor<f32> loc("jit(f)/transpose(jvp(a))/cos")
  // CHECK-NEXT: %[[V2:.*]] = stablehlo.tanh %[[V1]] : tensor<f32>
  %2 = stablehlo.tanh %1 : tensor<f32> loc("jit(f)/a\01%29/transpose\01%28b/tanh")
  // CHECK-NEXT: return %[[V2]] : tensor<f32>
  return %2 : tensor<f32>
// CHECK-NEXT: }
}
