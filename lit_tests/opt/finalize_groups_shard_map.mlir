// SPDX-License-Identifier: Apache-2.0
// Groups are looked at as XLA has them once it has inlined the bodies of shard_maps. (Not for mlir-opt, which has no Shardy.)
// RUN: hlotag-opt %s --hlotag-finalize --split-input-file --verify-diagnostics

sdy.mesh @mesh = <["x"=2]>

// The forward and the backward pass of one shard_map. Each alone is fine.
func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%a: tensor<2xf32>) {
    %3 = stablehlo.sine %a {mhlo.frontend_attributes = {_scheduling_group_id = "1"}} : tensor<2xf32>
    sdy.return %3 : tensor<2xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error@below {{'stablehlo.abs' and the scheduling group "1" depend on each other}}
  %1 = stablehlo.abs %0 : tensor<4xf32>
  %2 = sdy.manual_computation(%1) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%a: tensor<2xf32>) {
    %3 = stablehlo.cosine %a {mhlo.frontend_attributes = {_scheduling_group_id = "1"}} : tensor<2xf32>
    sdy.return %3 : tensor<2xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>

// The gap is in the body, and the calls that lead to members are, too.
func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%a: tensor<2xf32>) {
    %3 = func.call @layer(%a) : (tensor<2xf32>) -> tensor<2xf32>
    // expected-error@below {{'stablehlo.abs' and the scheduling group "1" depend on each other}}
    %4 = stablehlo.abs %3 : tensor<2xf32>
    sdy.return %4 : tensor<2xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.cosine %0 {mhlo.frontend_attributes = {_scheduling_group_id = "1"}} : tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @layer(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {_scheduling_group_id = "1"}} : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>

// What is fine: two shard_maps with nothing between them, and values that pass a member by.
func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0:2 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>, <@mesh, [{"x"}]>] manual_axes={"x"} (%a: tensor<2xf32>) {
    %3 = stablehlo.sine %a {mhlo.frontend_attributes = {_scheduling_group_id = "1"}} : tensor<2xf32>
    %4 = stablehlo.tanh %a : tensor<2xf32>
    sdy.return %3, %4 : tensor<2xf32>, tensor<2xf32>
  } : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %1 = stablehlo.abs %0#1 : tensor<4xf32>
  %2 = sdy.manual_computation(%0#0, %1) in_shardings=[<@mesh, [{"x"}]>, <@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%a: tensor<2xf32>, %b: tensor<2xf32>) {
    %3 = stablehlo.multiply %a, %b {mhlo.frontend_attributes = {_scheduling_group_id = "1"}} : tensor<2xf32>
    sdy.return %3 : tensor<2xf32>
  } : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
