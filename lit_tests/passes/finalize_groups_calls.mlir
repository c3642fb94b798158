// SPDX-License-Identifier: Apache-2.0
// Groups are looked at as XLA has them once it has inlined calls.
// RUN: hlotag-opt %s --hlotag-finalize --split-input-file --verify-diagnostics

// Each call alone is fine. Together they make one group, with what lies between the two as a gap.
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @layer(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @layer(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func private @layer(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {_scheduling_group_id = "1"}} : tensor<f32>
  // expected-error@below {{'stablehlo.abs' and the scheduling group "1" depend on each other}}
  %1 = stablehlo.abs %0 : tensor<f32>
  return %1 : tensor<f32>
}

// -----

func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @outer(%x) : (tensor<f32>) -> tensor<f32>
  // expected-error-re@below {{'stablehlo.abs' and the scheduling group "1" depend on each other, {{.*}} give later members and other calls of one function another value}}
  %1 = stablehlo.abs %0 : tensor<f32>
  %2 = call @outer(%1) : (tensor<f32>) -> tensor<f32>
  return %2 : tensor<f32>
}
func.func private @outer(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @layer(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @layer(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {_scheduling_group_id = "1"}} : tensor<f32>
  return %0 : tensor<f32>
}

// -----

// What is fine: calls that do not depend on each other or have nothing between them, calls that stay, values that
// pass a call by. (Calls in computations of their own: opt/finalize_groups_regions.mlir.)
func.func public @main(%x: tensor<f32>, %y: tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
  %0 = call @layer(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @layer(%0) : (tensor<f32>) -> tensor<f32>
  %2 = call @layer(%y) : (tensor<f32>) -> tensor<f32>
  %3 = stablehlo.abs %1 : tensor<f32>
  %4 = call @layer(%3) {mhlo.frontend_attributes = {inlineable = "false"}} : (tensor<f32>) -> tensor<f32>
  %7:2 = call @both(%2, %y) : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  %8 = call @layer(%7#1) : (tensor<f32>) -> tensor<f32>
  return %4, %7#0, %8 : tensor<f32>, tensor<f32>, tensor<f32>
}
func.func private @both(%x: tensor<f32>, %y: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %0 = stablehlo.abs %x : tensor<f32>
  return %0, %y : tensor<f32>, tensor<f32>
}
func.func private @layer(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {_scheduling_group_id = "1"}} : tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Functions that call each other, which HLO cannot have, are not looked at.
// expected-remark@below {{groups were not checked: with calls inlined, there are more than 1000000 operations}}
module {
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @endless(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @endless(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {_scheduling_group_id = "1"}} : tensor<f32>
  %1 = call @endless(%0) : (tensor<f32>) -> tensor<f32>
  %2 = stablehlo.sine %1 {mhlo.frontend_attributes = {_scheduling_group_id = "1"}} : tensor<f32>
  return %2 : tensor<f32>
}
}

// -----

// Collectives of one group are launched at once.
func.func public @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = "stablehlo.collective_broadcast"(%x) {mhlo.frontend_attributes = {collective_group_key = "a"}, replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.abs %0 : tensor<4xf32>
  // expected-error@below {{'stablehlo.collective_broadcast' and the collective groups "a", "b" depend on each other, from 'stablehlo.collective_broadcast' at}}
  %2 = "stablehlo.collective_broadcast"(%1) {mhlo.frontend_attributes = {collective_group_key = "a"}, replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  // Another group, without anything between its members.
  %3 = "stablehlo.collective_broadcast"(%y) {mhlo.frontend_attributes = {collective_group_key = "b"}, replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  %4 = "stablehlo.collective_broadcast"(%3) {mhlo.frontend_attributes = {collective_group_key = "b"}, replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  // These do not depend on each other, and what is no collective counts for nothing.
  %5 = "stablehlo.collective_broadcast"(%x) {mhlo.frontend_attributes = {collective_group_key = "c"}, replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  %6 = stablehlo.abs %5 {mhlo.frontend_attributes = {collective_group_key = "c"}} : tensor<4xf32>
  %7 = "stablehlo.collective_broadcast"(%y) {mhlo.frontend_attributes = {collective_group_key = "c"}, replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  %8 = stablehlo.add %6, %7 : tensor<4xf32>
  return %2, %4, %8 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// Two groups whose members are independent, but not the groups; and a function that is called twice.
func.func public @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = "stablehlo.collective_broadcast"(%x) {mhlo.frontend_attributes = {collective_group_key = "a"}, replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error@below {{'stablehlo.collective_broadcast' and the collective groups "a", "b", "c" depend on each other}}
  %1 = "stablehlo.collective_broadcast"(%0) {mhlo.frontend_attributes = {collective_group_key = "b"}, replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "stablehlo.collective_broadcast"(%y) {mhlo.frontend_attributes = {collective_group_key = "b"}, replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  %3 = "stablehlo.collective_broadcast"(%2) {mhlo.frontend_attributes = {collective_group_key = "a"}, replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  %4 = call @shared(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %5 = call @shared(%4) : (tensor<4xf32>) -> tensor<4xf32>
  return %1, %3, %5 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
func.func private @shared(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.collective_broadcast"(%x) {mhlo.frontend_attributes = {collective_group_key = "c"}, replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A function is checked for each caller, and reported once.
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @gap(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func public @other(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @gap(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @gap(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {_scheduling_group_id = "1"}} : tensor<f32>
  // expected-error@below {{'stablehlo.abs' and the scheduling group "1" depend on each other}}
  %1 = stablehlo.abs %0 : tensor<f32>
  %2 = stablehlo.sine %1 {mhlo.frontend_attributes = {_scheduling_group_id = "1"}} : tensor<f32>
  return %2 : tensor<f32>
}
