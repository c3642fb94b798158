// SPDX-License-Identifier: Apache-2.0
// A call in a region is in a computation of its own. (Not for mlir-opt, where stablehlo.case might hold symbols.)
// RUN: hlotag-opt %s --hlotag-finalize --verify-diagnostics

func.func public @main(%i: tensor<i32>, %x: tensor<f32>) -> tensor<f32> {
  %0 = call @layer(%x) : (tensor<f32>) -> tensor<f32>
  %1 = stablehlo.abs %0 : tensor<f32>
  %2 = "stablehlo.case"(%i) ({
    %3 = func.call @layer(%1) : (tensor<f32>) -> tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }) : (tensor<i32>) -> tensor<f32>
  return %2 : tensor<f32>
}
func.func private @layer(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {_scheduling_group_id = "1"}} : tensor<f32>
  return %0 : tensor<f32>
}
