// SPDX-License-Identifier: Apache-2.0
// Nothing computes what a function returns that calls itself.
// RUN: %python %S/Inputs/number.py %s | FileCheck %s

// CHECK: 0 = func.func()
// CHECK-NEXT: 1 = func.call(_)
// CHECK-NEXT: 2 = func.return(_)
// CHECK-NEXT: results: _
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @main(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
