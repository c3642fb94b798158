// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --hlotag-complete-lowering --split-input-file --verify-diagnostics
// RUN: not hlotag-opt %s --hlotag-complete-lowering=seeds=some 2>&1 | FileCheck %s

// CHECK: seeds
// CHECK: all|attached

func.func @no_dictionary(%x: tensor<f32>) -> tensor<f32> {
  // expected-error@below {{attribute 'mhlo.frontend_attributes' must be a dictionary, but is ["k"]}}
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = ["k"]} : tensor<f32>
  return %0 : tensor<f32>
}
