// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --split-input-file --hlotag-outline | FileCheck %s
// RUN: hlotag-opt %s --split-input-file --hlotag-outline --hlotag-outline | FileCheck %s
// RUN: hlotag-opt %s --split-input-file --hlotag-outline --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefix=LOC
// RUN: hlotag-opt %s --split-input-file --hlotag-outline="min-ops=3" | FileCheck %s --check-prefix=MIN
// RUN: hlotag-opt %s --split-input-file --hlotag-outline="key=group" | FileCheck %s --check-prefix=KEY

// What depends on the group comes after the call, what does not stays before it. Other entries stay where they are.
// CHECK-LABEL: func.func public @between(
// CHECK-SAME: %arg0: tensor<f32>, %arg1: tensor<f32>)
// CHECK-NEXT: %[[BEFORE:.*]] = stablehlo.cosine %arg1 : tensor
// CHECK-NEXT: %[[R:.*]]:2 = call @MUST_FUSE_a_b(%arg0, %[[BEFORE]]) {mhlo.frontend_attributes = {MUST_FUSE = "a b"}} :
// CHECK-NEXT: %[[N:.*]] = stablehlo.negate %[[R]]#0 : tensor
// CHECK-NEXT: %[[A:.*]] = stablehlo.abs %[[N]] : tensor
// CHECK-NEXT: %[[M:.*]] = stablehlo.multiply %[[A]], %[[R]]#1 : tensor
// CHECK-NEXT: return %[[M]]
// CHECK: func.func private @MUST_FUSE_a_b(%arg0: tensor<f32>, %arg1: tensor<f32>) -> (tensor<f32>, tensor<f32>)
// CHECK-NEXT: %[[S:.*]] = stablehlo.sine %arg0 {mhlo.frontend_attributes = {MUST_FUSE = "a b", k = "v"}} : tensor
// CHECK-NEXT: %[[D:.*]] = stablehlo.add %[[S]], %arg1 {mhlo.frontend_attributes = {MUST_FUSE = "a b"}} : tensor
// CHECK-NEXT: return %[[S]], %[[D]] :
// CHECK-NOT: func.func

// An operation keeps its location; the call has no name, since names of calls are put before those of the callee.
// LOC-LABEL: func.func public @between(
// LOC: call @MUST_FUSE_a_b{{.*}} loc("f.py":2:0)
// LOC: func.func private @MUST_FUSE_a_b(%arg0: {{.*}}, %arg1: {{.*}} loc("jit(f)/cos"("f.py":3:0)))
// LOC-NEXT: stablehlo.sine {{.*}} loc("jit(f)/sin"("f.py":1:0))
// LOC-NEXT: stablehlo.add {{.*}} loc("jit(f)/add"("f.py":2:0))
// LOC-NEXT: return {{.*}} loc("f.py":2:0)

// MIN-LABEL: func.func public @between(
// MIN-NOT: call
// MIN: return
// KEY-LABEL: func.func public @between(
// KEY-NOT: call
// KEY: return
func.func public @between(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {MUST_FUSE = "a b", k = "v"}} : tensor<f32> loc("jit(f)/sin"("f.py":1:0))
  %1 = stablehlo.negate %0 : tensor<f32>
  %2 = stablehlo.cosine %y : tensor<f32> loc("jit(f)/cos"("f.py":3:0))
  %3 = stablehlo.abs %1 : tensor<f32>
  %4 = stablehlo.add %0, %2 {mhlo.frontend_attributes = {MUST_FUSE = "a b"}} : tensor<f32> loc("jit(f)/add"("f.py":2:0))
  %5 = stablehlo.multiply %3, %4 : tensor<f32>
  return %5 : tensor<f32>
}

// -----

// Values that regions capture are arguments, and regions that use a result get the call's. A loop's body is a block of its own,
// but what is inside a member belongs to that.
// CHECK-LABEL: func.func @regions(
// CHECK: stablehlo.while
// CHECK: do
// CHECK-NEXT: %[[B:.*]] = func.call @MUST_FUSE_body(%iterArg, %arg1) {mhlo.frontend_attributes = {MUST_FUSE = "body"}} :
// CHECK-NEXT: stablehlo.return %[[B]]
// CHECK: %[[C:.*]] = call @MUST_FUSE_if(%arg0, %{{.*}}, %arg1) {mhlo.frontend_attributes = {MUST_FUSE = "if"}} :
// CHECK-NEXT: "stablehlo.if"(%arg0)
// CHECK: stablehlo.tanh %[[C]]
// CHECK: func.func private @MUST_FUSE_if(%arg0: tensor<i1>, %arg1: tensor<f32>, %arg2: tensor<f32>) -> tensor<f32>
// CHECK-NEXT: %[[IF:.*]] = "stablehlo.if"(%arg0)
// CHECK-NEXT: stablehlo.add %arg1, %arg2 {mhlo.frontend_attributes = {MUST_FUSE = "if"}} : tensor
// CHECK: stablehlo.sine %[[IF]]
// CHECK: func.func private @MUST_FUSE_body(%arg0: tensor<f32>, %arg1: tensor<f32>) -> tensor<f32>
// CHECK-NEXT: stablehlo.multiply %arg0, %arg1
// CHECK-NEXT: stablehlo.sine
// CHECK-NEXT: return
// CHECK-NOT: func.func
func.func @regions(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.while(%a = %x) : tensor<f32>
  cond {
    stablehlo.return %p : tensor<i1>
  } do {
    %b = stablehlo.multiply %a, %x {mhlo.frontend_attributes = {MUST_FUSE = "body"}} : tensor<f32>
    %c = stablehlo.sine %b {mhlo.frontend_attributes = {MUST_FUSE = "body"}} : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }
  %1 = "stablehlo.if"(%p) ({
    %b = stablehlo.add %0, %x {mhlo.frontend_attributes = {MUST_FUSE = "if"}} : tensor<f32>
    stablehlo.return %b : tensor<f32>
  }, {
    stablehlo.return %0 : tensor<f32>
  }) {mhlo.frontend_attributes = {MUST_FUSE = "if"}} : (tensor<i1>) -> tensor<f32>
  %2 = stablehlo.sine %1 {mhlo.frontend_attributes = {MUST_FUSE = "if"}} : tensor<f32>
  %3 = "stablehlo.if"(%p) ({
    %b = stablehlo.tanh %2 : tensor<f32>
    stablehlo.return %b : tensor<f32>
  }, {
    stablehlo.return %x : tensor<f32>
  }) : (tensor<i1>) -> tensor<f32>
  return %3 : tensor<f32>
}

// -----

// A call that is alone, and the body of a function that only such calls have, are what this pass makes.
// CHECK-LABEL: func.func public @done(
// CHECK-NEXT: call @f(%arg0) {mhlo.frontend_attributes = {MUST_FUSE = "1"}} :
// CHECK-NEXT: call @g(
// CHECK-NEXT: return
// CHECK: func.func private @f(
// CHECK-NEXT: stablehlo.sine
// CHECK-NEXT: stablehlo.cosine
// CHECK-NEXT: return
// CHECK: func.func private @g(
// CHECK-NEXT: call @MUST_FUSE_true(%arg0) {mhlo.frontend_attributes = {MUST_FUSE = true}} :
// CHECK-NEXT: return
// CHECK: func.func private @MUST_FUSE_true(
// CHECK-NOT: func.func
func.func public @done(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f(%x) {mhlo.frontend_attributes = {MUST_FUSE = "1"}} : (tensor<f32>) -> tensor<f32>
  %1 = call @g(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {MUST_FUSE = "1"}} : tensor<f32>
  %1 = stablehlo.cosine %0 {mhlo.frontend_attributes = {MUST_FUSE = "1"}} : tensor<f32>
  return %1 : tensor<f32>
}
func.func private @g(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {MUST_FUSE = true}} : tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Two blocks, two functions; names that exist are not used.
// CHECK-LABEL: func.func public @names(
// CHECK: call @MUST_FUSE_1_0(
// CHECK: func.func private @MUST_FUSE_1_0(
// CHECK: func.func public @other(
// CHECK: call @MUST_FUSE_1_1(
// CHECK: func.func private @MUST_FUSE_1_1(
// CHECK: func.func private @MUST_FUSE_1(
// CHECK-NOT: func.func
func.func public @names(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {MUST_FUSE = "1"}} : tensor<f32>
  return %0 : tensor<f32>
}
func.func public @other(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {MUST_FUSE = "1"}} : tensor<f32>
  return %0 : tensor<f32>
}
func.func private @MUST_FUSE_1(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}

// -----

// Side effects keep their order: the call takes the place of all of them.
// CHECK-LABEL: func.func @effects(
// CHECK-NEXT: stablehlo.custom_call @before
// CHECK-NEXT: call @MUST_FUSE_1
// CHECK-NEXT: stablehlo.custom_call @after
// CHECK-NEXT: return
// CHECK: func.func private @MUST_FUSE_1
// CHECK-NEXT: stablehlo.custom_call @member
// CHECK-NEXT: stablehlo.sine
func.func @effects(%x: tensor<f32>) -> tensor<f32> {
  stablehlo.custom_call @before(%x) {has_side_effect = true} : (tensor<f32>) -> ()
  stablehlo.custom_call @member(%x) {has_side_effect = true, mhlo.frontend_attributes = {MUST_FUSE = "1"}} : (tensor<f32>) -> ()
  stablehlo.custom_call @after(%x) {has_side_effect = true} : (tensor<f32>) -> ()
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {MUST_FUSE = "1"}} : tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Two groups of one block that lie within each other.
// CHECK-LABEL: func.func @interleaved(
// CHECK-NEXT: %[[A:.*]]:2 = call @MUST_FUSE_a(%arg0)
// CHECK-NEXT: %[[B:.*]] = call @MUST_FUSE_b(%[[A]]#0, %[[A]]#1)
// CHECK-NEXT: return %[[B]]
// KEY-LABEL: func.func @interleaved(
// KEY: stablehlo.sine
// KEY-NEXT: call @group_a_b_(
func.func @interleaved(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {MUST_FUSE = "a"}} : tensor<f32>
  %1 = stablehlo.sine %0 {mhlo.frontend_attributes = {MUST_FUSE = "b", group = "a/b\22"}} : tensor<f32>
  %2 = stablehlo.cosine %0 {mhlo.frontend_attributes = {MUST_FUSE = "a"}} : tensor<f32>
  %3 = stablehlo.add %1, %2 {mhlo.frontend_attributes = {MUST_FUSE = "b"}} : tensor<f32>
  return %3 : tensor<f32>
}

// -----

// Making room for one group changes the order in another.
// CHECK-LABEL: func.func @passed(
// CHECK-NEXT: %[[A:.*]]:2 = call @MUST_FUSE_a(%arg0)
// CHECK-NEXT: %[[B:.*]] = call @MUST_FUSE_b(%arg0, %[[A]]#0)
// CHECK-NEXT: stablehlo.add %[[B]], %[[A]]#1
// CHECK: func.func private @MUST_FUSE_b(%arg0: tensor<f32>, %arg1: tensor<f32>)
// CHECK-NEXT: stablehlo.negate %arg0
// CHECK-NEXT: stablehlo.abs %arg1
// CHECK-NEXT: stablehlo.multiply
func.func @passed(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {MUST_FUSE = "a"}} : tensor<f32>
  %1 = stablehlo.abs %0 {mhlo.frontend_attributes = {MUST_FUSE = "b"}} : tensor<f32>
  %2 = stablehlo.negate %x {mhlo.frontend_attributes = {MUST_FUSE = "b"}} : tensor<f32>
  %3 = stablehlo.cosine %0 {mhlo.frontend_attributes = {MUST_FUSE = "a"}} : tensor<f32>
  %4 = stablehlo.multiply %1, %2 {mhlo.frontend_attributes = {MUST_FUSE = "b"}} : tensor<f32>
  %5 = stablehlo.add %4, %3 : tensor<f32>
  return %5 : tensor<f32>
}
