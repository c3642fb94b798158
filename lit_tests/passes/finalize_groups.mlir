// SPDX-License-Identifier: Apache-2.0
// Scheduling groups that XLA's schedulers refuse.
// RUN: hlotag-opt %s --hlotag-finalize --split-input-file --verify-diagnostics
// As warnings they change nothing about the result.
// RUN: hlotag-opt %s --hlotag-finalize=on-mistake=warning --split-input-file 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=WARNING < %t
// CHECK: func.func @gap

func.func @gap(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {_scheduling_group_id = "1"}} : tensor<f32>
  // WARNING: warning: 'stablehlo.abs' and the scheduling group "1" depend on each other
  // expected-error@below {{'stablehlo.abs' and the scheduling group "1" depend on each other, from 'stablehlo.sine' at}}
  %1 = stablehlo.abs %0 : tensor<f32>
  %2 = stablehlo.negate %1 : tensor<f32>
  %3 = stablehlo.add %2, %2 {mhlo.frontend_attributes = {_scheduling_group_id = "1"}} : tensor<f32>
  return %3 : tensor<f32>
}

// -----

// Members that have other keys too, before and after that of the group.
func.func @keys(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {_a = "1", _scheduling_group_id = "1", k = "v"}} : tensor<f32>
  // expected-error@below {{'stablehlo.abs' and the scheduling group "1" depend on each other, from 'stablehlo.sine' at}}
  %1 = stablehlo.abs %0 : tensor<f32>
  %2 = stablehlo.add %1, %1 {mhlo.frontend_attributes = {_a = "1", _scheduling_group_id = "1", k = "v"}} : tensor<f32>
  return %2 : tensor<f32>
}

// -----

// Of many groups, three are named.
func.func @many(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {_scheduling_group_id = "1"}} : tensor<f32>
  // expected-error@below {{'stablehlo.cosine' and the scheduling groups "1", "2", "3" and 2 more depend on each other, from}}
  %1 = stablehlo.cosine %0 {mhlo.frontend_attributes = {_scheduling_group_id = "2"}} : tensor<f32>
  %2 = stablehlo.abs %1 {mhlo.frontend_attributes = {_scheduling_group_id = "3"}} : tensor<f32>
  %3 = stablehlo.tan %2 {mhlo.frontend_attributes = {_scheduling_group_id = "4"}} : tensor<f32>
  %4 = stablehlo.tanh %3 {mhlo.frontend_attributes = {_scheduling_group_id = "5"}} : tensor<f32>
  %5 = stablehlo.sine %4 {mhlo.frontend_attributes = {_scheduling_group_id = "1"}} : tensor<f32>
  return %5 : tensor<f32>
}

// -----

// A loop is one operation of its block, with what its body captures.
func.func @capture(%i: tensor<i32>, %x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {_scheduling_group_id = "1"}} : tensor<f32>
  // expected-error@below {{'stablehlo.case' and the scheduling group "1" depend on each other}}
  %1 = "stablehlo.case"(%i) ({
    %2 = stablehlo.abs %0 : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<i32>) -> tensor<f32>
  %3 = stablehlo.sine %1 {mhlo.frontend_attributes = {_scheduling_group_id = "1"}} : tensor<f32>
  return %3 : tensor<f32>
}

// -----

// Neither group can be scheduled as a whole before the other.
func.func @cycle(%x: tensor<f32>, %y: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {_scheduling_group_id = "1"}} : tensor<f32>
  // expected-error@below {{'stablehlo.cosine' and the scheduling groups "1", "2" depend on each other}}
  %1 = stablehlo.cosine %0 {mhlo.frontend_attributes = {_scheduling_group_id = "2"}} : tensor<f32>
  %2 = stablehlo.cosine %y {mhlo.frontend_attributes = {_scheduling_group_id = "2"}} : tensor<f32>
  %3 = stablehlo.sine %2 {mhlo.frontend_attributes = {_scheduling_group_id = "1"}} : tensor<f32>
  return %1, %3 : tensor<f32>, tensor<f32>
}

// -----

// Three groups in a ring, through an operation of none.
func.func @ring(%x: tensor<f32>, %y: tensor<f32>, %z: tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {_scheduling_group_id = "1"}} : tensor<f32>
  // expected-error@below {{the scheduling groups "1", "2", "3" depend on each other}}
  %1 = stablehlo.sine %0 {mhlo.frontend_attributes = {_scheduling_group_id = "2"}} : tensor<f32>
  %2 = stablehlo.sine %y {mhlo.frontend_attributes = {_scheduling_group_id = "2"}} : tensor<f32>
  %3 = stablehlo.sine %2 {mhlo.frontend_attributes = {_scheduling_group_id = "3"}} : tensor<f32>
  %4 = stablehlo.sine %z {mhlo.frontend_attributes = {_scheduling_group_id = "3"}} : tensor<f32>
  %5 = stablehlo.abs %4 : tensor<f32>
  %6 = stablehlo.sine %5 {mhlo.frontend_attributes = {_scheduling_group_id = "1"}} : tensor<f32>
  return %1, %3, %6 : tensor<f32>, tensor<f32>, tensor<f32>
}

// -----

func.func @order(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {_scheduling_group_id = "1", keep_original_sequence_order_in_group = "true"}} : tensor<f32>
  // expected-error-re@below {{'stablehlo.abs' and 'stablehlo.sine' at {{.*}} are in the scheduling group "1", and only one of them has 'keep_original_sequence_order_in_group'}}
  %1 = stablehlo.abs %0 {mhlo.frontend_attributes = {_scheduling_group_id = "1"}} : tensor<f32>
  return %1 : tensor<f32>
}

// -----

// What is fine: a group that is contiguous, one whose parts do not depend on each other, one group after
// another, other iterations of a pipelined loop, and operations that are in no group.
func.func @fine(%i: tensor<i32>, %x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {_scheduling_group_id = "1"}} : tensor<f32>
  %1 = stablehlo.sine %y : tensor<f32>
  %2 = stablehlo.add %0, %1 {mhlo.frontend_attributes = {_scheduling_group_id = "1"}} : tensor<f32>
  %3 = stablehlo.abs %2 : tensor<f32>
  %4 = stablehlo.sine %3 {mhlo.frontend_attributes = {_scheduling_group_id = "2", keep_original_sequence_order_in_group = "false"}} : tensor<f32>
  %5 = stablehlo.sine %y {mhlo.frontend_attributes = {_scheduling_group_id = "2"}} : tensor<f32>
  %6 = stablehlo.abs %5 {mhlo.frontend_attributes = {_scheduling_group_id = "noop"}} : tensor<f32>
  %7 = stablehlo.abs %6 : tensor<f32>
  %8 = stablehlo.abs %7 {mhlo.frontend_attributes = {_scheduling_group_id = "noop"}} : tensor<f32>
  %9 = stablehlo.abs %8 {mhlo.frontend_attributes = {_scheduling_group_id = ":1"}} : tensor<f32>
  %10 = stablehlo.abs %9 : tensor<f32>
  %11 = stablehlo.abs %10 {mhlo.frontend_attributes = {_scheduling_group_id = ":1"}} : tensor<f32>
  %12 = stablehlo.sine %11 {mhlo.frontend_attributes = {_scheduling_group_id = "3:0"}} : tensor<f32>
  %13 = stablehlo.abs %12 : tensor<f32>
  %14 = stablehlo.sine %13 {mhlo.frontend_attributes = {_scheduling_group_id = "3:1"}} : tensor<f32>
  %15 = "stablehlo.case"(%i) ({
    %16 = stablehlo.abs %14 {mhlo.frontend_attributes = {_scheduling_group_id = "1"}} : tensor<f32>
    stablehlo.return %16 : tensor<f32>
  }) : (tensor<i32>) -> tensor<f32>
  %17 = stablehlo.add %15, %4 : tensor<f32>
  return %17 : tensor<f32>
}
