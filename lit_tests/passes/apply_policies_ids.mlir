// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --hlotag-apply-policies='policies="[{key = \"_scheduling_group_id\", derived = \"retag\", offset = 100}]"' | FileCheck %s --check-prefixes=CHECK,RETAG
// RUN: hlotag-opt %s --hlotag-apply-policies='policies="[{key = \"_scheduling_group_id\", derived = \"drop\"}, {key = \"keep_original_sequence_order_in_group\", derived = \"same\"}]"' | FileCheck %s --check-prefixes=CHECK,DROP
// RUN: hlotag-opt %s --hlotag-apply-policies='defaults=true' | FileCheck %s --check-prefixes=CHECK,DEFAULTS

// CHECK-LABEL: func.func @f
func.func @f(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {_scheduling_group_id = "4"}} : tensor<f32> loc("jit(f)/jvp()/sin")
  %1 = stablehlo.sine %0 {mhlo.frontend_attributes = {_scheduling_group_id = ":1"}} : tensor<f32> loc("jit(f)/jvp()/sin")
  // A value without an id is shared with no operation, though the forward pass has it too.
  // RETAG: stablehlo.cosine %1 {mhlo.frontend_attributes = {_scheduling_group_id = ":1"}}
  // DROP: stablehlo.cosine %1 : tensor<f32>
  // DEFAULTS: stablehlo.cosine %1 {mhlo.frontend_attributes = {_scheduling_group_id = ":1"}}
  %2 = stablehlo.cosine %1 {mhlo.frontend_attributes = {_scheduling_group_id = ":1"}} : tensor<f32> loc("jit(f)/transpose(jvp())/mul")
  // The order is dropped with its group, unless it has a policy.
  // RETAG-NEXT: stablehlo.cosine %2 {mhlo.frontend_attributes = {_scheduling_group_id = "104", keep_original_sequence_order_in_group = "true"}}
  // DROP-NEXT: stablehlo.cosine %2 {mhlo.frontend_attributes = {keep_original_sequence_order_in_group = "true"}}
  // DEFAULTS-NEXT: stablehlo.cosine %2 : tensor<f32>
  %3 = stablehlo.cosine %2 {mhlo.frontend_attributes = {_scheduling_group_id = "4", keep_original_sequence_order_in_group = "true"}} : tensor<f32> loc("jit(f)/transpose(jvp())/mul")
  return %3 : tensor<f32>
}
