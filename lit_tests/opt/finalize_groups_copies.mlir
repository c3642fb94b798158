// SPDX-License-Identifier: Apache-2.0
// Groups are checked in the copies of functions that a pass before made.
// RUN: not hlotag-opt %s --hlotag-propagate --hlotag-finalize 2>&1 | FileCheck %s

module {
  func.func @main(%x: tensor<f32>) -> tensor<f32> {
    %0 = call @member(%x) {mhlo.frontend_attributes = {k = "1"}} : (tensor<f32>) -> tensor<f32>
    // CHECK: 'stablehlo.sine' and the scheduling group "1" depend on each other
    %1 = stablehlo.sine %0 : tensor<f32>
    %2 = call @member(%1) {mhlo.frontend_attributes = {k = "2"}} : (tensor<f32>) -> tensor<f32>
    return %2 : tensor<f32>
  }
  func.func private @member(%x: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.abs %x {mhlo.frontend_attributes = {_scheduling_group_id = "1"}} : tensor<f32>
    return %0 : tensor<f32>
  }
}
