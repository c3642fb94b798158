// SPDX-License-Identifier: Apache-2.0
// Operations that a backward rule of the user's binds: their marks, and functions that such rules call.
// RUN: hlotag-opt %s --hlotag-resolve --split-input-file --mlir-print-debuginfo --mlir-print-local-scope \
// RUN:   | FileCheck %s --implicit-check-not=hlotag --implicit-check-not=frontend_attributes
// RUN: hlotag-opt %s --hlotag-resolve --hlotag-resolve --split-input-file --mlir-print-debuginfo \
// RUN:   --mlir-print-local-scope | FileCheck %s --implicit-check-not=hlotag --implicit-check-not=frontend_attributes

// The mark takes one transpose away from tags within it. Tags around it are of derived operations.
// CHECK-LABEL: module @names
module @names attributes {hlotag.tags = [
  {forward = {k = "f"}, derived = {k = "d"}, remat = {k = "r"}},
  {forward = {o = "f"}, derived = {o = "d"}}
]} {
  func.func @f(%x: tensor<f32>) -> tensor<f32> {
    // CHECK: stablehlo.sine {{.*}} {mhlo.frontend_attributes = {k = "f"}} {{.*}} loc("transpose(jvp())/sin")
    %0 = stablehlo.sine %x : tensor<f32> loc("transpose(jvp(\01hlotag#custom\01\01hlotag#0\01))/sin")
    // CHECK-NEXT: stablehlo.sine {{.*}} {mhlo.frontend_attributes = {k = "f"}} {{.*}} loc("transpose(jvp(a))/b/sin")
    %1 = stablehlo.sine %0 : tensor<f32> loc("transpose(jvp(\01hlotag#custom\01a))/b/\01hlotag#0\01/sin")
    // A second gradient derives from the rule's operations, or recomputes them.
    // CHECK-NEXT: stablehlo.sine {{.*}} {mhlo.frontend_attributes = {k = "d"}} {{.*}} loc("transpose(jvp(transpose(jvp(a))))/sin")
    %2 = stablehlo.sine %1 : tensor<f32> loc("transpose(jvp(transpose(jvp(\01hlotag#custom\01\01hlotag#0\01a))))/sin")
    // CHECK-NEXT: stablehlo.sine {{.*}} {mhlo.frontend_attributes = {k = "r"}} {{.*}} loc("transpose(jvp(checkpoint))/rematted_computation/transpose(jvp())/sin")
    %3 = stablehlo.sine %2 : tensor<f32> loc("transpose(jvp(checkpoint))/rematted_computation/transpose(jvp(\01hlotag#custom\01\01hlotag#0\01))/sin")
    // A rule in a rule.
    // CHECK-NEXT: stablehlo.sine {{.*}} {mhlo.frontend_attributes = {k = "f", o = "d"}} {{.*}} loc("transpose(jvp(a))/transpose(jvp(b))/sin")
    %4 = stablehlo.sine %3 : tensor<f32> loc("transpose(jvp(\01hlotag#custom\01\01hlotag#1\01a))/transpose(jvp(\01hlotag#custom\01\01hlotag#0\01b))/sin")
    // CHECK-NEXT: stablehlo.sine {{.*}} {mhlo.frontend_attributes = {k = "f", o = "d"}} {{.*}} loc("transpose(jvp(a))/sin")
    %5 = stablehlo.sine %4 : tensor<f32> loc("transpose(jvp(\01hlotag#1\01a))/\01hlotag#custom\01\01hlotag#0\01/sin")
    // Nothing is left of a mark alone.
    // CHECK-NEXT: stablehlo.sine %{{[^{]*}} loc("a/sin")
    %6 = stablehlo.sine %5 : tensor<f32> loc("a/\01hlotag#custom\01/sin")
    return %6 : tensor<f32>
  }
}

// -----

// A function is in the phase of its calls: a transpose is in the name of the call, its rule in the function.
// CHECK-LABEL: module @calls
module @calls attributes {hlotag.tags = [{forward = {k = "f"}, derived = {k = "d"}}]} {
  // CHECK-LABEL: func.func public @main
  func.func public @main(%x: tensor<f32>) -> tensor<f32> {
    // CHECK: call @shared(%arg0)
    %0 = call @shared(%x) : (tensor<f32>) -> tensor<f32> loc("jvp(jit(shared))")
    // CHECK-NEXT: call @shared(%0)
    %1 = call @shared(%0) : (tensor<f32>) -> tensor<f32> loc("transpose(jvp(\01hlotag#custom\01jit(shared)))")
    // CHECK-NEXT: call @shared_0(%1)
    %2 = call @shared(%1) : (tensor<f32>) -> tensor<f32> loc("transpose(jvp(jit(shared)))")
    // CHECK-NEXT: call @transposed(%2)
    %3 = call @transposed(%2) : (tensor<f32>) -> tensor<f32> loc("transpose(jvp(jit(transposed)))")
    return %3 : tensor<f32>
  }
  // CHECK-LABEL: func.func private @shared(
  // CHECK-NEXT: stablehlo.sine {{.*}}k = "f"
  // CHECK-LABEL: func.func private @shared_0(
  // CHECK-NEXT: stablehlo.sine {{.*}}k = "d"
  func.func private @shared(%x: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.sine %x : tensor<f32> loc("\01hlotag#0\01/sin")
    return %0 : tensor<f32>
  }
  // CHECK-LABEL: func.func private @transposed(
  func.func private @transposed(%x: tensor<f32>) -> tensor<f32> {
    // CHECK-NEXT: stablehlo.sine {{.*}}k = "f"
    %0 = stablehlo.sine %x : tensor<f32> loc("\01hlotag#custom\01\01hlotag#0\01/sin")
    // CHECK-NEXT: stablehlo.cosine {{.*}}k = "d"
    %1 = stablehlo.cosine %0 : tensor<f32> loc("\01hlotag#0\01/cos")
    return %1 : tensor<f32>
  }
}

// -----

// Rules of one phase: the operations of a backward rule belong to the backward pass, derived from none.
// CHECK-LABEL: module @phases
module @phases attributes {
  hlotag.rules = [{name = "rule 1", text = "{}"}, {name = "rule 2", text = "{}"}],
  hlotag.tags = [{forward = {}, derived = {}, rules = [
    {rule = "0", forward = {f = "1"}, custom = {}, derived = {}},
    {rule = "1", forward = {}, custom = {b = "own"}, derived = {b = "derived"}}
  ]}]
} {
  // CHECK-LABEL: func.func public @main
  func.func public @main(%x: tensor<f32>) -> tensor<f32> {
    // CHECK: call @g(%arg0)
    %0 = call @g(%x) : (tensor<f32>) -> tensor<f32> loc("jvp(jit(g))")
    // CHECK-NEXT: call @g_0(%0)
    %1 = call @g(%0) : (tensor<f32>) -> tensor<f32> loc("transpose(jvp(\01hlotag#custom\01jit(g)))")
    // CHECK-NEXT: call @g_1(%1)
    %2 = call @g(%1) : (tensor<f32>) -> tensor<f32> loc("transpose(jvp(jit(g)))")
    return %2 : tensor<f32>
  }
  // CHECK-LABEL: func.func private @g(
  // CHECK-NEXT: stablehlo.sine {{.*}} {mhlo.frontend_attributes = {f = "1"}}
  // CHECK-LABEL: func.func private @g_0(
  // CHECK-NEXT: stablehlo.sine {{.*}} {mhlo.frontend_attributes = {b = "own"}}
  // CHECK-LABEL: func.func private @g_1(
  // CHECK-NEXT: stablehlo.sine {{.*}} {mhlo.frontend_attributes = {b = "derived"}}
  func.func private @g(%x: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.sine %x : tensor<f32> loc("\01hlotag#0\01/sin")
    return %0 : tensor<f32>
  }
}
