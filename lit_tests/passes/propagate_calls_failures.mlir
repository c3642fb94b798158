// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --hlotag-propagate=max-clones=1 --split-input-file --verify-diagnostics

func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f(%x) {mhlo.frontend_attributes = {k = "1"}} : (tensor<f32>) -> tensor<f32>
  %1 = call @f(%0) {mhlo.frontend_attributes = {k = "2"}} : (tensor<f32>) -> tensor<f32>
  %2 = call @f(%1) {mhlo.frontend_attributes = {k = "3"}} : (tensor<f32>) -> tensor<f32>
  return %2 : tensor<f32>
}
// expected-error@below {{more than 1 copies of functions would be needed for the entries that calls pass to them; see option 'max-clones'}}
func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x : tensor<f32>
  return %0 : tensor<f32>
}

// -----

func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  // expected-error@below {{attribute 'mhlo.frontend_attributes' must be a dictionary, but is unit}}
  %0 = call @f(%x) {mhlo.frontend_attributes} : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}

// -----

// As many copies as the option allows.
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f(%x) {mhlo.frontend_attributes = {k = "1"}} : (tensor<f32>) -> tensor<f32>
  %1 = call @f(%0) {mhlo.frontend_attributes = {k = "2"}} : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x : tensor<f32>
  return %0 : tensor<f32>
}
