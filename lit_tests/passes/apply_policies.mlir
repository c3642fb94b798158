// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --hlotag-apply-policies='policies="[{key = \"d\", derived = \"drop\"}, {key = \"s\", derived = \"same\"}, {key = \"r\", derived = \"retag\", offset = 100, suffix = \".b\"}, {key = \"_scheduling_group_id\", derived = \"retag\", offset = -1 : i32}]"' | FileCheck %s --check-prefixes=CHECK,ALL
// RUN: hlotag-opt %s --pass-pipeline='hlotag-apply-policies{policies="[{key = \"d\", derived = \"drop\"}, {key = \"r\", derived = \"retag\", offset = 100, suffix = \".b\"}, {key = \"_scheduling_group_id\", derived = \"retag\", offset = -1}]"},hlotag-apply-policies{policies="[{key = \"d\", derived = \"drop\"}, {key = \"r\", derived = \"retag\", offset = 100, suffix = \".b\"}, {key = \"_scheduling_group_id\", derived = \"retag\", offset = -1}]"}' | FileCheck %s --check-prefixes=CHECK,ALL
// RUN: hlotag-opt %s --hlotag-apply-policies | FileCheck %s --check-prefixes=CHECK,NONE
// RUN: hlotag-opt %s --hlotag-apply-policies="defaults=true" | FileCheck %s --check-prefixes=CHECK,DEFAULTS
// RUN: hlotag-opt %s --hlotag-apply-policies="defaults=true" --hlotag-apply-policies="defaults=true" | FileCheck %s --check-prefixes=CHECK,DEFAULTS
// RUN: hlotag-opt %s --hlotag-apply-policies="defaults=true report=true" 2>&1 | FileCheck %s --check-prefix=REPORT
// RUN: hlotag-opt %s --pass-pipeline='hlotag-apply-policies{defaults=true report=true policies="[{key = \"_scheduling_group_id\", derived = \"same\"}, {key = \"r\", derived = \"retag\", suffix = \"_\"}]"}' 2>&1 | FileCheck %s --check-prefix=OWN

// REPORT: remark: dropped '_scheduling_group_id' = "4" on 2 operations, of which this is the first
// REPORT: remark: dropped 'collective_group_key' = "c" on 1 operation
// REPORT: remark: dropped 'keep_original_sequence_order_in_group' = "true" on 1 operation
// REPORT: remark: dropped '_scheduling_group_id' = "4:1" on 1 operation
// REPORT-NOT: remark
// OWN: remark: retagged 'r' = "40" to "40_" on 1 operation
// OWN: remark: retagged 'r' = "id" to "id_" on 1 operation
// OWN: remark: dropped 'collective_group_key' = "c" on 1 operation
// OWN: remark: retagged 'r' = "50" to "50_" on 1 operation
// OWN-NOT: remark

// CHECK-LABEL: func.func public @main
// CHECK-NEXT: stablehlo.sine %arg0 {mhlo.frontend_attributes = {d = "1", r = "40", s = "1", x = "1"}}
// CHECK-NEXT: stablehlo.sine %0 {mhlo.frontend_attributes = {_scheduling_group_id = "4", collective_group_key = "c", keep_original_sequence_order_in_group = "true", r = "id"}}
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {d = "1", r = "40", s = "1", x = "1"}} : tensor<f32> loc("jit(f)/jvp(a)/sin")
  %1 = stablehlo.sine %0 {mhlo.frontend_attributes = {_scheduling_group_id = "4", collective_group_key = "c", keep_original_sequence_order_in_group = "true", r = "id"}} : tensor<f32> loc("jit(f)/jvp(b)/sin")
  // NONE-NEXT: stablehlo.cosine %1 {mhlo.frontend_attributes = {d = "1", r = "40", s = "1", x = "1"}}
  // DEFAULTS-NEXT: stablehlo.cosine %1 {mhlo.frontend_attributes = {d = "1", r = "40", s = "1", x = "1"}}
  // ALL-NEXT: stablehlo.cosine %1 {mhlo.frontend_attributes = {r = "140", s = "1", x = "1"}}
  %2 = stablehlo.cosine %1 {mhlo.frontend_attributes = {d = "1", r = "40", s = "1", x = "1"}} : tensor<f32> loc("jit(f)/transpose(jvp(a))/mul")
  // NONE-NEXT: stablehlo.cosine %2 {mhlo.frontend_attributes = {_scheduling_group_id = "4", r = "id"}}
  // DEFAULTS-NEXT: stablehlo.cosine %2 {mhlo.frontend_attributes = {r = "id"}}
  // ALL-NEXT: stablehlo.cosine %2 {mhlo.frontend_attributes = {_scheduling_group_id = "3", r = "id.b"}}
  %3 = stablehlo.cosine %2 {mhlo.frontend_attributes = {_scheduling_group_id = "4", r = "id"}} : tensor<f32> loc("jit(f)/transpose(jvp(b))/mul")
  // An id that the backward pass has for itself stays.
  // CHECK-NEXT: stablehlo.cosine %3 {mhlo.frontend_attributes = {_scheduling_group_id = "9", r = "8"}}
  %4 = stablehlo.cosine %3 {mhlo.frontend_attributes = {_scheduling_group_id = "9", r = "8"}} : tensor<f32> loc("jit(f)/transpose(jvp(b))/mul")
  // An attribute that becomes empty goes; an order means nothing without a group.
  // DEFAULTS-NEXT: stablehlo.cosine %4 : tensor
  // ALL-NEXT: stablehlo.cosine %4 {mhlo.frontend_attributes = {_scheduling_group_id = "3", collective_group_key = "c", keep_original_sequence_order_in_group = "true"}}
  // NONE-NEXT: stablehlo.cosine %4 {mhlo.frontend_attributes = {_scheduling_group_id = "4", collective_group_key = "c", keep_original_sequence_order_in_group = "true"}}
  %5 = stablehlo.cosine %4 {mhlo.frontend_attributes = {_scheduling_group_id = "4", collective_group_key = "c", keep_original_sequence_order_in_group = "true"}} : tensor<f32> loc("jit(f)/transpose(jvp(b))/mul")
  // The constant that a gradient starts from is not of the forward pass, whatever its name.
  %one = stablehlo.constant {mhlo.frontend_attributes = {_scheduling_group_id = "9"}} dense<1.0> : tensor<f32> loc("jit(f)")
  // CHECK: stablehlo.tanh
  %seed = stablehlo.tanh %one : tensor<f32>
  // A value that an operation computes from a constant is of the forward pass, and has its ids.
  // CHECK-NEXT: stablehlo.sine %{{.*}} {mhlo.frontend_attributes = {r = "50"}}
  %made = stablehlo.sine %one {mhlo.frontend_attributes = {r = "50"}} : tensor<f32> loc("jit(f)/jvp(d)/sin")
  // ALL-NEXT: stablehlo.cosine {{.*}} {mhlo.frontend_attributes = {r = "150"}}
  // NONE-NEXT: stablehlo.cosine {{.*}} {mhlo.frontend_attributes = {r = "50"}}
  // DEFAULTS-NEXT: stablehlo.cosine {{.*}} {mhlo.frontend_attributes = {r = "50"}}
  %from = stablehlo.cosine %made {mhlo.frontend_attributes = {r = "50"}} : tensor<f32> loc("jit(f)/transpose(jvp(d))/mul")
  // A broadcast of a constant is none.
  // CHECK-NEXT: stablehlo.broadcast_in_dim
  %ones = stablehlo.broadcast_in_dim %one, dims = [] {mhlo.frontend_attributes = {r = "60"}} : (tensor<f32>) -> tensor<4xf32> loc("jit(f)")
  // CHECK-NEXT: stablehlo.cosine {{.*}} {mhlo.frontend_attributes = {r = "60"}}
  %of_ones = stablehlo.cosine %ones {mhlo.frontend_attributes = {r = "60"}} : tensor<4xf32> loc("jit(f)/transpose(jvp(d))/mul")
  // The record that a key was removed is no id, and stays.
  // CHECK-NEXT: stablehlo.abs {{.*}} {mhlo.frontend_attributes = {d = ["hlotag.unset"], r = ["hlotag.unset"]}}
  %unset = stablehlo.abs %made {mhlo.frontend_attributes = {d = ["hlotag.unset"], r = ["hlotag.unset"]}} : tensor<f32> loc("jit(f)/jvp(d)/abs")
  // CHECK-NEXT: stablehlo.abs {{.*}} {mhlo.frontend_attributes = {d = ["hlotag.unset"], r = ["hlotag.unset"]}}
  %unset_too = stablehlo.abs %unset {mhlo.frontend_attributes = {d = ["hlotag.unset"], r = ["hlotag.unset"]}} : tensor<f32> loc("jit(f)/transpose(jvp(d))/abs")
  // No group.
  // CHECK-NEXT: stablehlo.cosine %5 {mhlo.frontend_attributes = {_scheduling_group_id = "noop"}}
  %6 = stablehlo.cosine %5 {mhlo.frontend_attributes = {_scheduling_group_id = "noop"}} : tensor<f32> loc("jit(f)/transpose(jvp(b))/mul")
  %7 = call @f(%6) : (tensor<f32>) -> tensor<f32> loc("jit(f)/transpose(jvp(c))/jit(g)")
  return %7 : tensor<f32>
}
// A function that the backward pass calls.
// CHECK-LABEL: func.func private @f
// DEFAULTS-NEXT: stablehlo.sine %arg0 : tensor
// ALL-NEXT: stablehlo.sine %arg0 {mhlo.frontend_attributes = {_scheduling_group_id = "3:1"}}
// NONE-NEXT: stablehlo.sine %arg0 {mhlo.frontend_attributes = {_scheduling_group_id = "4:1"}}
func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {_scheduling_group_id = "4:1"}} : tensor<f32> loc("sin")
  return %0 : tensor<f32>
}
