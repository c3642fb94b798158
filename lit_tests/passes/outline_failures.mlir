// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --hlotag-outline --split-input-file --verify-diagnostics
// RUN: not hlotag-opt %s --hlotag-outline="key=" 2>&1 | FileCheck %s --check-prefix=EMPTY
// EMPTY: error: the option 'key' must not be empty
// RUN: not hlotag-opt %s --hlotag-outline="on-refusal=warning" --split-input-file 2>&1 | FileCheck %s --check-prefix=WARN
// WARN-DAG: warning: cannot outline the 2 operations with MUST_FUSE = "1": {{.*}}; the group was not outlined
// WARN: func.func @values
// WARN-NOT: call @MUST_FUSE_1
// WARN: call @MUST_FUSE_2

func.func @values(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {MUST_FUSE = "1"}} : tensor<f32>
  %1 = stablehlo.negate %0 : tensor<f32>
  // expected-error@below {{cannot outline the 2 operations with MUST_FUSE = "1": this operation is not in the group, but uses a result of the group, and 'stablehlo.add' in the group uses its result}}
  %2 = stablehlo.abs %1 : tensor<f32>
  %3 = stablehlo.add %0, %2 {mhlo.frontend_attributes = {MUST_FUSE = "1"}} : tensor<f32>
  %4 = stablehlo.sine %3 {mhlo.frontend_attributes = {MUST_FUSE = "2"}} : tensor<f32>
  return %4 : tensor<f32>
}

// -----

// Through the region of an operation outside.
func.func @captured(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {MUST_FUSE = "1"}} : tensor<f32>
  // expected-error@below {{this operation is not in the group, but uses a result of the group, and 'stablehlo.if' in the group uses its result}}
  %1 = "stablehlo.if"(%p) ({
    %a = stablehlo.negate %0 : tensor<f32>
    stablehlo.return %a : tensor<f32>
  }, {
    stablehlo.return %x : tensor<f32>
  }) : (tensor<i1>) -> tensor<f32>
  %2 = "stablehlo.if"(%p) ({
    stablehlo.return %1 : tensor<f32>
  }, {
    stablehlo.return %x : tensor<f32>
  }) {mhlo.frontend_attributes = {MUST_FUSE = "1"}} : (tensor<i1>) -> tensor<f32>
  return %2 : tensor<f32>
}

// -----

func.func @effects(%x: tensor<f32>) -> tensor<f32> {
  stablehlo.custom_call @a(%x) {has_side_effect = true, mhlo.frontend_attributes = {MUST_FUSE = "1"}} : (tensor<f32>) -> ()
  // expected-error@below {{side effects order it after one operation of the group and before another, 'stablehlo.custom_call'}}
  stablehlo.custom_call @b(%x) {has_side_effect = true} : (tensor<f32>) -> ()
  stablehlo.custom_call @c(%x) {has_side_effect = true, mhlo.frontend_attributes = {MUST_FUSE = "1"}} : (tensor<f32>) -> ()
  return %x : tensor<f32>
}

// -----

// A call has the side effects of its function, and a loop those of its body.
func.func @calls(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {
  %0 = call @f(%x) {mhlo.frontend_attributes = {MUST_FUSE = "1"}} : (tensor<f32>) -> tensor<f32>
  // expected-error@below {{side effects order it after one operation of the group and before another, 'func.call'}}
  %1 = stablehlo.while(%a = %x) : tensor<f32>
  cond {
    stablehlo.return %p : tensor<i1>
  } do {
    stablehlo.custom_call @b(%x) {has_side_effect = true} : (tensor<f32>) -> ()
    stablehlo.return %a : tensor<f32>
  }
  %2 = call @f(%x) {mhlo.frontend_attributes = {MUST_FUSE = "1"}} : (tensor<f32>) -> tensor<f32>
  return %2 : tensor<f32>
}
func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  stablehlo.custom_call @b(%x) {has_side_effect = true} : (tensor<f32>) -> ()
  return %x : tensor<f32>
}

// -----

func.func @dictionary(%x: tensor<f32>) -> tensor<f32> {
  // expected-error@below {{attribute 'mhlo.frontend_attributes' must be a dictionary, but is "1"}}
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = "1"} : tensor<f32>
  return %0 : tensor<f32>
}

// -----

// The call of an outlined group has the side effects of the group.
func.func @outlined(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {MUST_FUSE = "1"}} : tensor<f32>
  stablehlo.custom_call @first(%x) {has_side_effect = true, mhlo.frontend_attributes = {MUST_FUSE = "2"}} : (tensor<f32>) -> ()
  // expected-error@below {{cannot outline the 2 operations with MUST_FUSE = "2": this operation is not in the group, and side effects order it after one operation of the group and before another, 'stablehlo.custom_call'}}
  stablehlo.custom_call @second(%x) {has_side_effect = true, mhlo.frontend_attributes = {MUST_FUSE = "1"}} : (tensor<f32>) -> ()
  stablehlo.custom_call @third(%x) {has_side_effect = true, mhlo.frontend_attributes = {MUST_FUSE = "2"}} : (tensor<f32>) -> ()
  return %0 : tensor<f32>
}
