// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --hlotag-propagate-calls --split-input-file | FileCheck %s
// A second run finds nothing to do.
// RUN: hlotag-opt %s --hlotag-propagate-calls --hlotag-propagate-calls --split-input-file | FileCheck %s

// Three calls, two sets of entries, one call without: two copies.
// CHECK-LABEL: func.func public @main
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  // CHECK: call @f_0(%arg0) {mhlo.frontend_attributes = {k = "1"}}
  %0 = call @f(%x) {mhlo.frontend_attributes = {k = "1"}} : (tensor<f32>) -> tensor<f32>
  // CHECK: call @f(%0) : (tensor<f32>)
  %1 = call @f(%0) : (tensor<f32>) -> tensor<f32>
  // CHECK: call @f_1(%1) {mhlo.frontend_attributes = {k = "2"}}
  %2 = call @f(%1) {mhlo.frontend_attributes = {k = "2"}} : (tensor<f32>) -> tensor<f32>
  // CHECK: call @f_0(%2) {mhlo.frontend_attributes = {k = "1"}}
  %3 = call @f(%2) {mhlo.frontend_attributes = {k = "1"}} : (tensor<f32>) -> tensor<f32>
  return %3 : tensor<f32>
}
// CHECK-LABEL: func.func private @f(
// CHECK-NEXT: constant dense
// CHECK-NEXT: stablehlo.sine %arg0 : tensor<f32>
// CHECK-NEXT: stablehlo.cosine {{.*}} {mhlo.frontend_attributes = {k = "own"}}
// CHECK-LABEL: func.func private @f_0(
// CHECK-NEXT: constant {mhlo.frontend_attributes = {k = "1"}}
// CHECK-NEXT: stablehlo.sine {{.*}} {mhlo.frontend_attributes = {k = "1"}}
// CHECK-NEXT: stablehlo.cosine {{.*}} {mhlo.frontend_attributes = {k = "own"}}
// CHECK-LABEL: func.func private @f_1(
// CHECK: stablehlo.sine {{.*}} {mhlo.frontend_attributes = {k = "2"}}
func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  %c = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.sine %x : tensor<f32>
  %1 = stablehlo.cosine %0 {mhlo.frontend_attributes = {k = "own"}} : tensor<f32>
  return %1 : tensor<f32>
}

// -----

// All callers agree: the function itself changes. So do the functions it calls, and its own calls.
// CHECK-LABEL: func.func public @main
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  // CHECK: call @f(%arg0)
  %0 = call @f(%x) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  // CHECK: call @f(%0)
  %1 = call @f(%0) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
// CHECK-LABEL: func.func private @f(
func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  // CHECK: call @g(%arg0) {mhlo.frontend_attributes = {k = "v"}}
  %0 = call @g(%x) : (tensor<f32>) -> tensor<f32>
  // CHECK: call @g_0(%0) {mhlo.frontend_attributes = {k = "w"}}
  %1 = call @g(%0) {mhlo.frontend_attributes = {k = "w"}} : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
// CHECK-LABEL: func.func private @g(
// CHECK: stablehlo.sine {{.*}}k = "v"
// CHECK-LABEL: func.func private @g_0(
// CHECK: stablehlo.sine {{.*}}k = "w"
func.func private @g(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x : tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Names that are taken are passed over.
// CHECK-LABEL: func.func public @main
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  // CHECK: call @f_1(%arg0)
  %0 = call @f(%x) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  %1 = call @f(%0) : (tensor<f32>) -> tensor<f32>
  %2 = call @f_0(%1) : (tensor<f32>) -> tensor<f32>
  return %2 : tensor<f32>
}
func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x : tensor<f32>
  return %0 : tensor<f32>
}
func.func private @f_0(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.abs %x : tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Nothing would change: no copy. @empty has nothing to tag, @has has the key already, @ext no body.
// CHECK-LABEL: func.func public @main
// CHECK-NOT: _0
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @empty(%x) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  %1 = call @empty(%0) : (tensor<f32>) -> tensor<f32>
  %2 = call @has(%1) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  %3 = call @has(%2) : (tensor<f32>) -> tensor<f32>
  %4 = call @ext(%3) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  %5 = call @ext(%4) : (tensor<f32>) -> tensor<f32>
  %6 = call @single(%5) {mhlo.frontend_attributes = {inlineable = "false"}} : (tensor<f32>) -> tensor<f32>
  return %6 : tensor<f32>
}
func.func private @empty(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}
func.func private @has(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {k = "w"}} : tensor<f32>
  return %0 : tensor<f32>
}
func.func private @ext(tensor<f32>) -> tensor<f32>
// CHECK-LABEL: func.func private @single
// CHECK: stablehlo.sine %arg0 : tensor<f32>
func.func private @single(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x : tensor<f32>
  return %0 : tensor<f32>
}

// -----

// A cycle. Each function is copied once, and the copies call each other.
// CHECK-LABEL: func.func public @main
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  // CHECK: call @a_0(%arg0)
  %0 = call @a(%x) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32>
  // CHECK: call @a(%0)
  %1 = call @a(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
// CHECK-LABEL: func.func private @a(
// CHECK: call @b(%arg0) : (tensor<f32>)
// CHECK-LABEL: func.func private @a_0(
// CHECK: call @b_0(%arg0) {mhlo.frontend_attributes = {k = "v"}}
func.func private @a(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @b(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
// CHECK-LABEL: func.func private @b(
// CHECK: call @a(%arg0) : (tensor<f32>)
// CHECK-LABEL: func.func private @b_0(
// CHECK: call @a_0(%arg0) {mhlo.frontend_attributes = {k = "v"}}
func.func private @b(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @a(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
