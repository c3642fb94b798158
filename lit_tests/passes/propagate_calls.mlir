// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --hlotag-propagate --split-input-file | FileCheck %s --implicit-check-not=frontend_attributes
// A second run finds nothing to do.
// RUN: hlotag-opt %s --hlotag-propagate --hlotag-propagate --split-input-file | FileCheck %s --implicit-check-not=frontend_attributes

// Three calls, two sets of entries, one call without: two copies.
// CHECK-LABEL: func.func public @main(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = call @f_0(%[[ARG0]]) {mhlo.frontend_attributes = {k = "1"}} : (tensor<f32>) -> tensor<f32>
  %0 = call @f(%x) {mhlo.frontend_attributes = {k = "1"}} : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: %[[V1:.*]] = call @f(%[[V0]]) : (tensor<f32>) -> tensor<f32>
  %1 = call @f(%0) : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: %[[V2:.*]] = call @f_1(%[[V1]]) {mhlo.frontend_attributes = {k = "2"}} : (tensor<f32>) -> tensor<f32>
  %2 = call @f(%1) {mhlo.frontend_attributes = {k = "2"}} : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: %[[V3:.*]] = call @f_0(%[[V2]]) {mhlo.frontend_attributes = {k = "1"}} : (tensor<f32>) -> tensor<f32>
  %3 = call @f(%2) {mhlo.frontend_attributes = {k = "1"}} : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: return %[[V3]] : tensor<f32>
  return %3 : tensor<f32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @f(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[CST:.*]] = stablehlo.constant dense<1.000000e+00> : tensor<f32>
  %c = stablehlo.constant dense<1.0> : tensor<f32>
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] : tensor<f32>
  %0 = stablehlo.sine %x : tensor<f32>
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.cosine %[[V0]] {mhlo.frontend_attributes = {k = "own"}} : tensor<f32>
  %1 = stablehlo.cosine %0 {mhlo.frontend_attributes = {k = "own"}} : tensor<f32>
  // CHECK-NEXT: return %[[V1]] : tensor<f32>
  return %1 : tensor<f32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @f_0(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
// CHECK-NEXT: %[[CST:.*]] = stablehlo.constant {mhlo.frontend_attributes = {k = "1"}} dense<1.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {k = "1"}} : tensor<f32>
// CHECK-NEXT: %[[V1:.*]] = stablehlo.cosine %[[V0]] {mhlo.frontend_attributes = {k = "own"}} : tensor<f32>
// CHECK-NEXT: return %[[V1]] : tensor<f32>
// CHECK-NEXT: }
// CHECK-LABEL: func.func private @f_1(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
// CHECK-NEXT: %[[CST:.*]] = stablehlo.constant {mhlo.frontend_attributes = {k = "2"}} dense<1.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {k = "2"}} : tensor<f32>
// CHECK-NEXT: %[[V1:.*]] = stablehlo.cosine %[[V0]] {mhlo.frontend_attributes = {k = "own"}} : tensor<f32>
// CHECK-NEXT: return %[[V1]] : tensor<f32>
// CHECK-NEXT: }

// -----

// All callers agree: the function itself changes. So do the functions it calls, and its own calls.
// CHECK-LABEL: func.func public @main(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = call @f(%[[ARG0]]) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  %0 = call @f(%x) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: %[[V1:.*]] = call @f(%[[V0]]) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  %1 = call @f(%0) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: return %[[V1]] : tensor<f32>
  return %1 : tensor<f32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @f(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = call @g(%[[ARG0]]) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  %0 = call @g(%x) : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: %[[V1:.*]] = call @g_0(%[[V0]]) {mhlo.frontend_attributes = {k = "w"}} : (tensor<f32>) -> tensor<f32>
  %1 = call @g(%0) {mhlo.frontend_attributes = {k = "w"}} : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: return %[[V1]] : tensor<f32>
  return %1 : tensor<f32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @g(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func private @g(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
  %0 = stablehlo.sine %x : tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  return %0 : tensor<f32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @g_0(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
// CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {k = "w"}} : tensor<f32>
// CHECK-NEXT: return %[[V0]] : tensor<f32>
// CHECK-NEXT: }

// -----

// Names that are taken are passed over.
// CHECK-LABEL: func.func public @main(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = call @f_1(%[[ARG0]]) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  %0 = call @f(%x) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: %[[V1:.*]] = call @f(%[[V0]]) : (tensor<f32>) -> tensor<f32>
  %1 = call @f(%0) : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: %[[V2:.*]] = call @f_0(%[[V1]]) : (tensor<f32>) -> tensor<f32>
  %2 = call @f_0(%1) : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: return %[[V2]] : tensor<f32>
  return %2 : tensor<f32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @f(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] : tensor<f32>
  %0 = stablehlo.sine %x : tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  return %0 : tensor<f32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @f_1(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
// CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
// CHECK-NEXT: return %[[V0]] : tensor<f32>
// CHECK-NEXT: }
// CHECK-LABEL: func.func private @f_0(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func private @f_0(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.abs %[[ARG0]] : tensor<f32>
  %0 = stablehlo.abs %x : tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  return %0 : tensor<f32>
// CHECK-NEXT: }
}

// -----

// Nothing would change: no copy. @empty has nothing to tag, @has has the key already, @ext no body.
// CHECK-LABEL: func.func public @main(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = call @empty(%[[ARG0]]) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  %0 = call @empty(%x) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: %[[V1:.*]] = call @empty(%[[V0]]) : (tensor<f32>) -> tensor<f32>
  %1 = call @empty(%0) : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: %[[V2:.*]] = call @has(%[[V1]]) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  %2 = call @has(%1) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: %[[V3:.*]] = call @has(%[[V2]]) : (tensor<f32>) -> tensor<f32>
  %3 = call @has(%2) : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: %[[V4:.*]] = call @ext(%[[V3]]) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  %4 = call @ext(%3) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: %[[V5:.*]] = call @ext(%[[V4]]) : (tensor<f32>) -> tensor<f32>
  %5 = call @ext(%4) : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: %[[V6:.*]] = call @single(%[[V5]]) {mhlo.frontend_attributes = {inlineable = "false"}} : (tensor<f32>) -> tensor<f32>
  %6 = call @single(%5) {mhlo.frontend_attributes = {inlineable = "false"}} : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: return %[[V6]] : tensor<f32>
  return %6 : tensor<f32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @empty(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func private @empty(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: return %[[ARG0]] : tensor<f32>
  return %x : tensor<f32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @has(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func private @has(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {k = "w"}} : tensor<f32>
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {k = "w"}} : tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  return %0 : tensor<f32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @ext(
// CHECK-SAME: tensor<f32>) -> tensor<f32>
func.func private @ext(tensor<f32>) -> tensor<f32>
// CHECK-LABEL: func.func private @single(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func private @single(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] : tensor<f32>
  %0 = stablehlo.sine %x : tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  return %0 : tensor<f32>
// CHECK-NEXT: }
}

// -----

// A cycle. Each function is copied once, and the copies call each other.
// CHECK-LABEL: func.func public @main(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = call @a_0(%[[ARG0]]) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  %0 = call @a(%x) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: %[[V1:.*]] = call @a(%[[V0]]) : (tensor<f32>) -> tensor<f32>
  %1 = call @a(%0) : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: return %[[V1]] : tensor<f32>
  return %1 : tensor<f32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @a(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func private @a(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = call @b(%[[ARG0]]) : (tensor<f32>) -> tensor<f32>
  %0 = call @b(%x) : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  return %0 : tensor<f32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @a_0(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
// CHECK-NEXT: %[[V0:.*]] = call @b_0(%[[ARG0]]) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
// CHECK-NEXT: return %[[V0]] : tensor<f32>
// CHECK-NEXT: }
// CHECK-LABEL: func.func private @b(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
func.func private @b(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = call @a(%[[ARG0]]) : (tensor<f32>) -> tensor<f32>
  %0 = call @a(%x) : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: return %[[V0]] : tensor<f32>
  return %0 : tensor<f32>
// CHECK-NEXT: }
}
// CHECK-LABEL: func.func private @b_0(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32>) -> tensor<f32> {
// CHECK-NEXT: %[[V0:.*]] = call @a_0(%[[ARG0]]) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
// CHECK-NEXT: return %[[V0]] : tensor<f32>
// CHECK-NEXT: }
