// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --hlotag-propagate --split-input-file --verify-diagnostics

func.func @no_dictionary(%i: tensor<i32>, %x: tensor<f32>) -> tensor<f32> {
  // expected-error@below {{attribute 'mhlo.frontend_attributes' must be a dictionary, but is "k"}}
  %0 = "stablehlo.case"(%i) ({
    %1 = stablehlo.sine %x : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {mhlo.frontend_attributes = "k"} : (tensor<i32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

func.func @no_dictionary_inside(%i: tensor<i32>, %x: tensor<f32>) -> tensor<f32> {
  %0 = "stablehlo.case"(%i) ({
    // expected-error@below {{attribute 'mhlo.frontend_attributes' must be a dictionary, but is 1 : i32}}
    %1 = stablehlo.sine %x {mhlo.frontend_attributes = 1 : i32} : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {mhlo.frontend_attributes = {k = "v"}} : (tensor<i32>) -> tensor<f32>
  return %0 : tensor<f32>
}
