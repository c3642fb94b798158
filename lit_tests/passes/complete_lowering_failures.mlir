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

// -----

// A constant that gets what all its users have: an error in this run, not in the next.
func.func @attached(%x: tensor<f32>) -> tensor<f32> {
  // expected-error@below {{attribute 'hlotag.attached' must be a dictionary, but is "k"}}
  %c = stablehlo.constant {hlotag.attached = "k"} dense<3.0> : tensor<f32>
  %0 = stablehlo.add %x, %c {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
  return %0 : tensor<f32>
}

// -----

func.func @derived(%x: tensor<f32>) -> tensor<f32> {
  // expected-error@below {{attribute 'hlotag.derived' must be a dictionary, but is "k"}}
  %c = stablehlo.constant {hlotag.derived = "k"} dense<3.0> : tensor<f32>
  %0 = stablehlo.add %x, %c {hlotag.attached = {k = "v"}, mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
  return %0 : tensor<f32>
}
