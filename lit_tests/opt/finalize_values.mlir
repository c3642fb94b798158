// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --hlotag-finalize --verify-diagnostics
//
// Python's catalogue has the legal values: mlir-opt checks none.

// An illegal value of a key that XLA reads; each dictionary is reported once.
func.func @legal(%x: tensor<f32>) -> tensor<f32> {
  // expected-error@below {{'stablehlo.sine' key '_xla_loop_unroll_strategy' in 'mhlo.frontend_attributes' has the value "some", which is not legal; legal values: full, double-buffer. With this one the GPU compiler would abort the process}}
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {_xla_loop_unroll_strategy = "some"}} : tensor<f32>
  %1 = stablehlo.sine %0 {mhlo.frontend_attributes = {_xla_loop_unroll_strategy = "some"}} : tensor<f32>
  // expected-error@below {{key 'inlineable' in 'mhlo.frontend_attributes' has the value "yes", which is not legal; legal values: false, true, auto, xla_early, xla_late}}
  %2 = stablehlo.sine %1 {mhlo.frontend_attributes = {inlineable = "yes"}} : tensor<f32>
  return %2 : tensor<f32>
}
