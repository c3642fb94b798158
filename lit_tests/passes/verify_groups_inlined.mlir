// SPDX-License-Identifier: Apache-2.0
// Calls are inlined up to a number of operations; then a remark says that they are not.
// RUN: hlotag-opt %s --hlotag-verify="on-mistake=warning max-inlined=11" 2>&1 | FileCheck %s
// RUN: hlotag-opt %s --hlotag-verify="on-mistake=warning max-inlined=10" 2>&1 | FileCheck %s --check-prefix=FEW
// CHECK-NOT: remark:
// CHECK: warning: 'stablehlo.abs' and the scheduling group "1" depend on each other
// CHECK-NOT: remark:
// FEW-NOT: warning:
// FEW: remark: groups were checked without inlining calls, which makes more than 10 operations
// FEW-NOT: warning:

func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @layer(%x) : (tensor<f32>) -> tensor<f32>
  %1 = stablehlo.abs %0 : tensor<f32>
  %2 = call @layer(%1) : (tensor<f32>) -> tensor<f32>
  return %2 : tensor<f32>
}
func.func private @layer(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {_scheduling_group_id = "1"}} : tensor<f32>
  return %0 : tensor<f32>
}
