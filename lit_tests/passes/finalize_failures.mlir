// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --hlotag-finalize --split-input-file --verify-diagnostics

func.func @values(%x: tensor<f32>) -> tensor<f32> {
  // expected-error@below {{key 'k' in 'mhlo.frontend_attributes' has the value 3 : i32, which XLA drops: it must be a string or a bool. Correct it where it is written, or remove it by hlotag-strip{keys=k}}}
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {j = "fine", k = 3 : i32, l = "fine"}} : tensor<f32>
  // expected-error@below {{key 'l' in 'mhlo.frontend_attributes' has the value ["a"]}}
  %1 = stablehlo.cosine %0 {mhlo.frontend_attributes = {l = ["a"]}} : tensor<f32>
  return %1 : tensor<f32>
}

// -----

func.func @dictionary(%x: tensor<f32>) -> tensor<f32> {
  // expected-error@below {{'mhlo.frontend_attributes' must be a dictionary, but is "k=v"}}
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = "k=v"} : tensor<f32>
  return %0 : tensor<f32>
}

// -----

func.func @reserved(%i: tensor<i32>, %x: tensor<f32>) -> tensor<f32> {
  %0 = "stablehlo.case"(%i) ({
    // expected-error@below {{key 'hlotag.grad.k' in 'mhlo.frontend_attributes': the prefix 'hlotag.' is reserved}}
    %1 = stablehlo.sine %x {mhlo.frontend_attributes = {hlotag.grad.k = "v"}} : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<i32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// expected-error@below {{the module still has 'hlotag.tags'; run hlotag-resolve first}}
module attributes {hlotag.tags = []} {}
