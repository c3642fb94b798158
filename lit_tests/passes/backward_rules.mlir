// SPDX-License-Identifier: Apache-2.0
// Operations that a backward rule of the user's binds: their marks, and functions that such rules call.
// RUN: hlotag-opt %s --hlotag-resolve --split-input-file --mlir-print-debuginfo --mlir-print-local-scope \
// RUN:   | FileCheck %s --implicit-check-not=hlotag --implicit-check-not=frontend_attributes
// RUN: hlotag-opt %s --hlotag-resolve --hlotag-resolve --split-input-file --mlir-print-debuginfo \
// RUN:   --mlir-print-local-scope | FileCheck %s --implicit-check-not=hlotag --implicit-check-not=frontend_attributes

// The mark takes one transpose away from tags within it. Tags around it are of derived operations.
// CHECK: module @names {
module @names attributes {hlotag.tags = [
  {forward = {k = "f"}, derived = {k = "d"}, remat = {k = "r"}},
  {forward = {o = "f"}, derived = {o = "d"}}
]} {
  // CHECK-LABEL: func.func @f(
  // CHECK-SAME: %[[ARG0:.*]]: tensor<f32> loc({{"-":[0-9:]+}})) -> tensor<f32> {
  func.func @f(%x: tensor<f32>) -> tensor<f32> {
    // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {k = "f"}} : tensor<f32> loc("transpose(jvp())/sin")
    %0 = stablehlo.sine %x : tensor<f32> loc("transpose(jvp(\01hlotag#custom\01\01hlotag#0\01))/sin")
    // CHECK-NEXT: %[[V1:.*]] = stablehlo.sine %[[V0]] {mhlo.frontend_attributes = {k = "f"}} : tensor<f32> loc("transpose(jvp(a))/b/sin")
    %1 = stablehlo.sine %0 : tensor<f32> loc("transpose(jvp(\01hlotag#custom\01a))/b/\01hlotag#0\01/sin")
    // A second gradient derives from the rule's operations, or recomputes them.
    // CHECK-NEXT: %[[V2:.*]] = stablehlo.sine %[[V1]] {mhlo.frontend_attributes = {k = "d"}} : tensor<f32> loc("transpose(jvp(transpose(jvp(a))))/sin")
    %2 = stablehlo.sine %1 : tensor<f32> loc("transpose(jvp(transpose(jvp(\01hlotag#custom\01\01hlotag#0\01a))))/sin")
    // CHECK-NEXT: %[[V3:.*]] = stablehlo.sine %[[V2]] {mhlo.frontend_attributes = {k = "r"}} : tensor<f32> loc("transpose(jvp(checkpoint))/rematted_computation/transpose(jvp())/sin")
    %3 = stablehlo.sine %2 : tensor<f32> loc("transpose(jvp(checkpoint))/rematted_computation/transpose(jvp(\01hlotag#custom\01\01hlotag#0\01))/sin")
    // A rule in a rule.
    // CHECK-NEXT: %[[V4:.*]] = stablehlo.sine %[[V3]] {mhlo.frontend_attributes = {k = "f", o = "d"}} : tensor<f32> loc("transpose(jvp(a))/transpose(jvp(b))/sin")
    %4 = stablehlo.sine %3 : tensor<f32> loc("transpose(jvp(\01hlotag#custom\01\01hlotag#1\01a))/transpose(jvp(\01hlotag#custom\01\01hlotag#0\01b))/sin")
    // CHECK-NEXT: %[[V5:.*]] = stablehlo.sine %[[V4]] {mhlo.frontend_attributes = {k = "f", o = "d"}} : tensor<f32> loc("transpose(jvp(a))/sin")
    %5 = stablehlo.sine %4 : tensor<f32> loc("transpose(jvp(\01hlotag#1\01a))/\01hlotag#custom\01\01hlotag#0\01/sin")
    // Nothing is left of a mark alone.
    // CHECK-NEXT: %[[V6:.*]] = stablehlo.sine %[[V5]] : tensor<f32> loc("a/sin")
    %6 = stablehlo.sine %5 : tensor<f32> loc("a/\01hlotag#custom\01/sin")
    // CHECK-NEXT: return %[[V6]] : tensor<f32> loc({{"-":[0-9:]+}})
    return %6 : tensor<f32>
  // CHECK-NEXT: } loc({{"-":[0-9:]+}})
  }
// CHECK: } loc({{"-":[0-9:]+}})
}

// -----

// A function is in the phase of its calls: a transpose is in the name of the call, its rule in the function.
// CHECK: module @calls {
module @calls attributes {hlotag.tags = [{forward = {k = "f"}, derived = {k = "d"}}]} {
  // CHECK-LABEL: func.func public @main(
  // CHECK-SAME: %[[ARG0:.*]]: tensor<f32> loc({{"-":[0-9:]+}})) -> tensor<f32> {
  func.func public @main(%x: tensor<f32>) -> tensor<f32> {
    // CHECK-NEXT: %[[V0:.*]] = call @shared(%[[ARG0]]) : (tensor<f32>) -> tensor<f32> loc("jvp(jit(shared))")
    %0 = call @shared(%x) : (tensor<f32>) -> tensor<f32> loc("jvp(jit(shared))")
    // CHECK-NEXT: %[[V1:.*]] = call @shared(%[[V0]]) : (tensor<f32>) -> tensor<f32> loc("transpose(jvp(jit(shared)))")
    %1 = call @shared(%0) : (tensor<f32>) -> tensor<f32> loc("transpose(jvp(\01hlotag#custom\01jit(shared)))")
    // CHECK-NEXT: %[[V2:.*]] = call @shared_0(%[[V1]]) : (tensor<f32>) -> tensor<f32> loc("transpose(jvp(jit(shared)))")
    %2 = call @shared(%1) : (tensor<f32>) -> tensor<f32> loc("transpose(jvp(jit(shared)))")
    // CHECK-NEXT: %[[V3:.*]] = call @transposed(%[[V2]]) : (tensor<f32>) -> tensor<f32> loc("transpose(jvp(jit(transposed)))")
    %3 = call @transposed(%2) : (tensor<f32>) -> tensor<f32> loc("transpose(jvp(jit(transposed)))")
    // CHECK-NEXT: return %[[V3]] : tensor<f32> loc({{"-":[0-9:]+}})
    return %3 : tensor<f32>
  // CHECK-NEXT: } loc({{"-":[0-9:]+}})
  }
  // CHECK-LABEL: func.func private @shared(
  // CHECK-SAME: %[[ARG0:.*]]: tensor<f32> loc({{"-":[0-9:]+}})) -> tensor<f32> {
  func.func private @shared(%x: tensor<f32>) -> tensor<f32> {
    // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {k = "f"}} : tensor<f32> loc("sin")
    %0 = stablehlo.sine %x : tensor<f32> loc("\01hlotag#0\01/sin")
    // CHECK-NEXT: return %[[V0]] : tensor<f32> loc({{"-":[0-9:]+}})
    return %0 : tensor<f32>
  // CHECK-NEXT: } loc({{"-":[0-9:]+}})
  }
  // CHECK-LABEL: func.func private @shared_0(
  // CHECK-SAME: %[[ARG0:.*]]: tensor<f32> loc({{"-":[0-9:]+}})) -> tensor<f32> {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {k = "d"}} : tensor<f32> loc("sin")
  // CHECK-NEXT: return %[[V0]] : tensor<f32> loc({{"-":[0-9:]+}})
  // CHECK-NEXT: } loc({{"-":[0-9:]+}})
  // CHECK-LABEL: func.func private @transposed(
  // CHECK-SAME: %[[ARG0:.*]]: tensor<f32> loc({{"-":[0-9:]+}})) -> tensor<f32> {
  func.func private @transposed(%x: tensor<f32>) -> tensor<f32> {
    // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {k = "f"}} : tensor<f32> loc("sin")
    %0 = stablehlo.sine %x : tensor<f32> loc("\01hlotag#custom\01\01hlotag#0\01/sin")
    // CHECK-NEXT: %[[V1:.*]] = stablehlo.cosine %[[V0]] {mhlo.frontend_attributes = {k = "d"}} : tensor<f32> loc("cos")
    %1 = stablehlo.cosine %0 : tensor<f32> loc("\01hlotag#0\01/cos")
    // CHECK-NEXT: return %[[V1]] : tensor<f32> loc({{"-":[0-9:]+}})
    return %1 : tensor<f32>
  // CHECK-NEXT: } loc({{"-":[0-9:]+}})
  }
// CHECK: } loc({{"-":[0-9:]+}})
}

// -----

// Rules of one phase: the operations of a backward rule belong to the backward pass, derived from none.
// CHECK: module @phases {
module @phases attributes {
  hlotag.rules = [{name = "rule 1", text = "{}"}, {name = "rule 2", text = "{}"}],
  hlotag.tags = [{forward = {}, derived = {}, rules = [
    {rule = "0", forward = {f = "1"}, custom = {}, derived = {}},
    {rule = "1", forward = {}, custom = {b = "own"}, derived = {b = "derived"}}
  ]}]
} {
  // CHECK-LABEL: func.func public @main(
  // CHECK-SAME: %[[ARG0:.*]]: tensor<f32> loc({{"-":[0-9:]+}})) -> tensor<f32> {
  func.func public @main(%x: tensor<f32>) -> tensor<f32> {
    // CHECK-NEXT: %[[V0:.*]] = call @g(%[[ARG0]]) : (tensor<f32>) -> tensor<f32> loc("jvp(jit(g))")
    %0 = call @g(%x) : (tensor<f32>) -> tensor<f32> loc("jvp(jit(g))")
    // CHECK-NEXT: %[[V1:.*]] = call @g_0(%[[V0]]) : (tensor<f32>) -> tensor<f32> loc("transpose(jvp(jit(g)))")
    %1 = call @g(%0) : (tensor<f32>) -> tensor<f32> loc("transpose(jvp(\01hlotag#custom\01jit(g)))")
    // CHECK-NEXT: %[[V2:.*]] = call @g_1(%[[V1]]) : (tensor<f32>) -> tensor<f32> loc("transpose(jvp(jit(g)))")
    %2 = call @g(%1) : (tensor<f32>) -> tensor<f32> loc("transpose(jvp(jit(g)))")
    // CHECK-NEXT: return %[[V2]] : tensor<f32> loc({{"-":[0-9:]+}})
    return %2 : tensor<f32>
  // CHECK-NEXT: } loc({{"-":[0-9:]+}})
  }
  // CHECK-LABEL: func.func private @g(
  // CHECK-SAME: %[[ARG0:.*]]: tensor<f32> loc({{"-":[0-9:]+}})) -> tensor<f32> {
  func.func private @g(%x: tensor<f32>) -> tensor<f32> {
    // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {f = "1"}} : tensor<f32> loc("sin")
    %0 = stablehlo.sine %x : tensor<f32> loc("\01hlotag#0\01/sin")
    // CHECK-NEXT: return %[[V0]] : tensor<f32> loc({{"-":[0-9:]+}})
    return %0 : tensor<f32>
  // CHECK-NEXT: } loc({{"-":[0-9:]+}})
  }
// CHECK-LABEL: func.func private @g_0(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32> loc({{"-":[0-9:]+}})) -> tensor<f32> {
// CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {b = "own"}} : tensor<f32> loc("sin")
// CHECK-NEXT: return %[[V0]] : tensor<f32> loc({{"-":[0-9:]+}})
// CHECK-NEXT: } loc({{"-":[0-9:]+}})
// CHECK-LABEL: func.func private @g_1(
// CHECK-SAME: %[[ARG0:.*]]: tensor<f32> loc({{"-":[0-9:]+}})) -> tensor<f32> {
// CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {b = "derived"}} : tensor<f32> loc("sin")
// CHECK-NEXT: return %[[V0]] : tensor<f32> loc({{"-":[0-9:]+}})
// CHECK-NEXT: } loc({{"-":[0-9:]+}})
// CHECK: } loc({{"-":[0-9:]+}})
}

// -----

// Rules around a backward rule give to its operations what they give to derived ones.
// CHECK: module @rules {
module @rules attributes {hlotag.rules = [{name = "rule 1", text = "t"}], hlotag.tags = [
  {forward = {}, derived = {}, rules = [{rule = "0", forward = {k = "f"}, derived = {k = "d"}}]},
  {forward = {o = "f"}, derived = {o = "d"}}
]} {
  // CHECK-LABEL: func.func @f(
  // CHECK-SAME: %[[ARG0:.*]]: tensor<f32> loc({{"-":[0-9:]+}})) -> tensor<f32> {
  func.func @f(%x: tensor<f32>) -> tensor<f32> {
    // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {k = "d", o = "f"}} : tensor<f32> loc("transpose(jvp(a))/sin")
    %0 = stablehlo.sine %x : tensor<f32> loc("transpose(jvp(\01hlotag#0\01a))/\01hlotag#custom\01\01hlotag#1\01/sin")
    // CHECK-NEXT: return %[[V0]] : tensor<f32> loc({{"-":[0-9:]+}})
    return %0 : tensor<f32>
  // CHECK-NEXT: } loc({{"-":[0-9:]+}})
  }
// CHECK: } loc({{"-":[0-9:]+}})
}
