// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --hlotag-stats --verify-diagnostics

func.func @dictionary(%x: tensor<f32>) -> tensor<f32> {
  // expected-error@below {{attribute 'mhlo.frontend_attributes' must be a dictionary, but is "k=v"}}
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = "k=v"} : tensor<f32>
  return %0 : tensor<f32>
}
