// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --hlotag-strip | FileCheck %s --check-prefixes=CHECK,ALL --implicit-check-not=frontend_attributes
// RUN: hlotag-opt %s --hlotag-strip --hlotag-strip | FileCheck %s --check-prefixes=CHECK,ALL --implicit-check-not=frontend_attributes
// RUN: hlotag-opt %s --hlotag-strip="keys=a?,c" | FileCheck %s --check-prefixes=CHECK,SOME --implicit-check-not=frontend_attributes
// RUN: hlotag-opt %s --pass-pipeline="builtin.module(hlotag-strip{keys=*})" | FileCheck %s --check-prefixes=CHECK,EVERY --implicit-check-not=frontend_attributes
// RUN: hlotag-opt %s --hlotag-strip="names=a*,a?,c" | FileCheck %s --check-prefix=NAMES

// CHECK-LABEL: func.func @entries
func.func @entries(%x: tensor<f32>) -> tensor<f32> {
  // ALL-NEXT: stablehlo.sine %arg0 : tensor
  // SOME-NEXT: stablehlo.sine %arg0 {mhlo.frontend_attributes = {b = "3"}} : tensor
  // EVERY-NEXT: stablehlo.sine %arg0 : tensor
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {a1 = "1", a2 = "2", b = "3"}} : tensor<f32>
  // What partitioners and hlotag keep there goes only when it is named.
  // ALL-NEXT: stablehlo.cosine %0 {mhlo.frontend_attributes = {xla.sdy.sharding = "s"}} : tensor
  // SOME-NEXT: stablehlo.cosine %0 {mhlo.frontend_attributes = {xla.sdy.sharding = "s"}} : tensor
  // EVERY-NEXT: stablehlo.cosine %0 : tensor
  %1 = stablehlo.cosine %0 {mhlo.frontend_attributes = {a1 = "1", xla.sdy.sharding = "s"}} : tensor<f32>
  // Other attributes stay.
  // CHECK-NEXT: stablehlo.tanh %1 {k.a1 = "1"} : tensor
  %2 = stablehlo.tanh %1 {k.a1 = "1", mhlo.frontend_attributes = {c = "1"}} : tensor<f32>
  // CHECK-NEXT: return
  return %2 : tensor<f32>
}

// What JAX writes for the one operation that it stands on changes what that does; it goes only when it is named.
// CHECK-LABEL: func.func @own
func.func @own(%x: tensor<f32>) -> tensor<f32> {
  // ALL-NEXT: stablehlo.custom_call @f(%arg0) {mhlo.frontend_attributes = {num_batch_dims = "1"}} : (tensor
  // SOME-NEXT: stablehlo.custom_call @f(%arg0) {mhlo.frontend_attributes = {b = "3", num_batch_dims = "1"}} : (tensor
  // EVERY-NEXT: stablehlo.custom_call @f(%arg0) : (tensor
  %0 = stablehlo.custom_call @f(%x) {mhlo.frontend_attributes = {b = "3", num_batch_dims = "1"}} : (tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: return
  return %0 : tensor<f32>
}

// The records of removed entries go with them. Without `keys` no record stays.
// CHECK-LABEL: func.func @origins
func.func @origins(%x: tensor<f32>) -> tensor<f32> {
  // ALL-NEXT: stablehlo.sine %arg0 {mhlo.frontend_attributes = {xla.sdy.sharding = "s"}} : tensor
  // SOME-NEXT: stablehlo.sine %arg0 {hlotag.origins = {xla.sdy.sharding = {pass = "p"}}, mhlo.frontend_attributes = {xla.sdy.sharding = "s"}} : tensor
  // EVERY-NEXT: stablehlo.sine %arg0 : tensor
  %0 = stablehlo.sine %x {hlotag.origins = {a1 = {pass = "p"}, xla.sdy.sharding = {pass = "p"}}, mhlo.frontend_attributes = {a1 = "1", xla.sdy.sharding = "s"}} : tensor<f32>
  return %0 : tensor<f32>
}

// CHECK-LABEL: func.func @regions
func.func @regions(%x: tensor<i1>, %y: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: "stablehlo.if"(%arg0) ({
  // CHECK-NEXT: stablehlo.sine %arg1 : tensor
  %0 = "stablehlo.if"(%x) ({
    %1 = stablehlo.sine %y {mhlo.frontend_attributes = {a1 = "1"}} : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }, {
    stablehlo.return %y : tensor<f32>
  // CHECK: }) : (tensor<i1>) -> tensor<f32>
  }) {mhlo.frontend_attributes = {a1 = "1"}} : (tensor<i1>) -> tensor<f32>
  return %0 : tensor<f32>
}

// Names are no patterns.
// CHECK-LABEL: func.func @names
// NAMES-LABEL: func.func @names
func.func @names(%x: tensor<f32>) -> tensor<f32> {
  // ALL-NEXT: stablehlo.sine %arg0 : tensor
  // SOME-NEXT: stablehlo.sine %arg0 {mhlo.frontend_attributes = {b = "3"}} : tensor
  // EVERY-NEXT: stablehlo.sine %arg0 : tensor
  // NAMES-NEXT: stablehlo.sine %arg0 {mhlo.frontend_attributes = {a1 = "1", b = "3"}} : tensor
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {"a*" = "0", a1 = "1", "a?" = "2", b = "3", c = "4"}} : tensor<f32>
  return %0 : tensor<f32>
}
