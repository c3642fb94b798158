// SPDX-License-Identifier: Apache-2.0
// Without rules, nothing changes.
// RUN: hlotag-opt %s --hlotag-attach -o %t
// RUN: hlotag-opt %s | diff - %t

func.func @waves(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x : tensor<f32>
  %1 = stablehlo.cosine %0 : tensor<f32>
  %2 = stablehlo.sine %1 {mhlo.frontend_attributes = {a = "own"}} : tensor<f32>
  return %2 : tensor<f32>
}

func.func @phases(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x : tensor<f32> loc("jit(f)/jvp()/sin")
  %1 = stablehlo.tanh %0 : tensor<f32> loc("jit(f)/jvp()/tanh")
  %2 = stablehlo.abs %1 : tensor<f32> loc("jit(f)/jvp()/abs")
  %3 = stablehlo.sine %2 : tensor<f32> loc("jit(f)/transpose(jvp())/sin")
  %4 = stablehlo.tanh %3 : tensor<f32> loc("jit(f)/transpose(jvp())/tanh")
  return %4 : tensor<f32>
}
