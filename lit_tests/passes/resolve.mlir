// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --hlotag-resolve --split-input-file --mlir-print-debuginfo --mlir-print-local-scope \
// RUN:   | FileCheck %s --implicit-check-not=frontend_attributes --implicit-check-not=hlotag
// A second run finds nothing to do.
// RUN: hlotag-opt %s --hlotag-resolve --hlotag-resolve --split-input-file --mlir-print-debuginfo \
// RUN:   --mlir-print-local-scope | FileCheck %s --implicit-check-not=frontend_attributes --implicit-check-not=hlotag

// A mark alone in its transform, between elements, first and last.
// CHECK: module @places {
module @places attributes {hlotag.tags = [{entries = {k = "v"}}]} {
  // CHECK-LABEL: func.func @f(
  // CHECK-SAME: %[[ARG0:.*]]: tensor<f32> loc({{"-":[0-9:]+}})) -> tensor<f32> {
  func.func @f(%x: tensor<f32>) -> tensor<f32> {
    // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<f32> loc("jit(f)/jvp()/sin")
    %0 = stablehlo.sine %x : tensor<f32> loc("jit(f)/jvp(\01hlotag#0\01)/sin")
    // CHECK-NEXT: %[[V1:.*]] = stablehlo.cosine %[[V0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<f32> loc("jit(f)/while/cos")
    %1 = stablehlo.cosine %0 : tensor<f32> loc("jit(f)/\01hlotag#0\01/while/cos")
    // CHECK-NEXT: %[[V2:.*]] = stablehlo.tanh %[[V1]] {mhlo.frontend_attributes = {k = "v"}} : tensor<f32> loc("tanh")
    %2 = stablehlo.tanh %1 : tensor<f32> loc("\01hlotag#0\01/tanh")
    // CHECK-NEXT: %[[V3:.*]] = stablehlo.abs %[[V2]] {mhlo.frontend_attributes = {k = "v"}} : tensor<f32> loc("jit(f)")
    %3 = stablehlo.abs %2 : tensor<f32> loc("jit(f)/\01hlotag#0\01")
    // CHECK-NEXT: %[[V4:.*]] = stablehlo.negate %[[V3]] {mhlo.frontend_attributes = {k = "v"}} : tensor<f32> loc("jit(f)/vmap(body)/neg")
    %4 = stablehlo.negate %3 : tensor<f32> loc("jit(f)/vmap(\01hlotag#0\01body)/neg")
    // CHECK-NEXT: return %[[V4]] : tensor<f32> loc({{"-":[0-9:]+}})
    return %4 : tensor<f32>
  // CHECK-NEXT: } loc({{"-":[0-9:]+}})
  }
// CHECK: } loc({{"-":[0-9:]+}})
}

// -----

// The inner mark wins; of the outer one stays what the inner one does not say.
// CHECK: module @nested {
module @nested attributes {hlotag.tags = [
  {entries = {a = "outer", b = "outer"}},
  {entries = {a = "inner", c = "inner"}},
  {entries = {a = ["hlotag.unset"], c = ["hlotag.unset"]}}
]} {
  // CHECK-LABEL: func.func @f(
  // CHECK-SAME: %[[ARG0:.*]]: tensor<f32> loc({{"-":[0-9:]+}})) -> tensor<f32> {
  func.func @f(%x: tensor<f32>) -> tensor<f32> {
    // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {a = "inner", b = "outer", c = "inner"}} : tensor<f32> loc("jit(f)/sin")
    %0 = stablehlo.sine %x : tensor<f32> loc("jit(f)/\01hlotag#0\01/\01hlotag#1\01/sin")
    // CHECK-NEXT: %[[V1:.*]] = stablehlo.cosine %[[V0]] {mhlo.frontend_attributes = {a = "outer", b = "outer", c = "inner"}} : tensor<f32> loc("cos")
    %1 = stablehlo.cosine %0 : tensor<f32> loc("\01hlotag#1\01/\01hlotag#0\01/cos")
    // What the operation has wins over both.
    // CHECK-NEXT: %[[V2:.*]] = stablehlo.tanh %[[V1]] {mhlo.frontend_attributes = {a = "own", b = "outer", z = "own"}} : tensor<f32> loc("tanh")
    %2 = stablehlo.tanh %1 {mhlo.frontend_attributes = {a = "own", z = "own"}} : tensor<f32> loc("\01hlotag#0\01/tanh")
    // A key that was taken away has its entry until hlotag-finalize, also against an outer mark.
    // CHECK-NEXT: %[[V3:.*]] = stablehlo.abs %[[V2]] {mhlo.frontend_attributes = {a = ["hlotag.unset"], b = "outer", c = ["hlotag.unset"]}} : tensor<f32> loc("transpose()/abs")
    %3 = stablehlo.abs %2 : tensor<f32> loc("transpose(\01hlotag#0\01\01hlotag#2\01)/abs")
    // CHECK-NEXT: return %[[V3]] : tensor<f32> loc({{"-":[0-9:]+}})
    return %3 : tensor<f32>
  // CHECK-NEXT: } loc({{"-":[0-9:]+}})
  }
// CHECK: } loc({{"-":[0-9:]+}})
}

// -----

// The mark of a name wins over those in the location that it is around, and of fused locations the
// first wins; of the others stays what it does not say.
// CHECK: module @precedence {
module @precedence attributes {hlotag.tags = [
  {entries = {a = "0", b = "0"}},
  {entries = {a = "1", c = "1"}},
  {entries = {a = "2", d = "2"}}
]} {
  // CHECK-LABEL: func.func @f(
  // CHECK-SAME: %[[ARG0:.*]]: tensor<f32> loc({{"-":[0-9:]+}})) -> tensor<f32> {
  func.func @f(%x: tensor<f32>) -> tensor<f32> {
    // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {a = "0", b = "0", c = "1"}} : tensor<f32> loc("sin"("x"))
    %0 = stablehlo.sine %x : tensor<f32> loc("\01hlotag#0\01/sin"("\01hlotag#1\01/x"))
    // CHECK-NEXT: %[[V1:.*]] = stablehlo.cosine %[[V0]] {mhlo.frontend_attributes = {a = "1", b = "0", c = "1"}} : tensor<f32> loc(fused["cos", "x"])
    %1 = stablehlo.cosine %0 : tensor<f32> loc(fused["\01hlotag#1\01/cos", "\01hlotag#0\01/x"])
    // CHECK-NEXT: %[[V2:.*]] = stablehlo.tanh %[[V1]] {mhlo.frontend_attributes = {a = "0", b = "0", c = "1", d = "2"}} : tensor<f32> loc("tanh"("x"("y"("f.py":1:1))))
    %2 = stablehlo.tanh %1 : tensor<f32> loc("\01hlotag#0\01/tanh"("\01hlotag#1\01/x"("\01hlotag#2\01/y"("f.py":1:1))))
    // The location inside is known from the operation before.
    // CHECK-NEXT: %[[V3:.*]] = stablehlo.abs %[[V2]] {mhlo.frontend_attributes = {a = "1", c = "1", d = "2"}} : tensor<f32> loc("abs"("y"("f.py":1:1)))
    %3 = stablehlo.abs %2 : tensor<f32> loc("\01hlotag#1\01/abs"("\01hlotag#2\01/y"("f.py":1:1)))
    // CHECK-NEXT: return %[[V3]] : tensor<f32> loc({{"-":[0-9:]+}})
    return %3 : tensor<f32>
  // CHECK-NEXT: } loc({{"-":[0-9:]+}})
  }
// CHECK: } loc({{"-":[0-9:]+}})
}

// -----

// Marks at any depth of a location; all else in it stays.
// CHECK: module @nests {
module @nests attributes {hlotag.tags = [
  {entries = {k = "callee"}}, {entries = {k = "caller", o = "1"}}
]} {
  // CHECK-LABEL: func.func @f(
  // CHECK-SAME: %[[ARG0:.*]]: tensor<f32> loc({{"-":[0-9:]+}})) -> tensor<f32> {
  func.func @f(%x: tensor<f32>) -> tensor<f32> {
    // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {k = "callee"}} : tensor<f32> loc("sin:"("jit(f)/sin"(callsite("f"("f.py":3:4 to :9) at "g"("g.py":5:6)))))
    %0 = stablehlo.sine %x : tensor<f32> loc("sin:"("jit(f)/\01hlotag#0\01/sin"(callsite("f"("f.py":3:4 to :9) at "g"("g.py":5:6)))))
    // CHECK-NEXT: %[[V1:.*]] = stablehlo.cosine %[[V0]] {mhlo.frontend_attributes = {k = "callee", o = "1"}} : tensor<f32> loc(callsite("cos" at "jit(g)/call"("g.py":5:6)))
    %1 = stablehlo.cosine %0 : tensor<f32> loc(callsite("\01hlotag#0\01/cos" at "jit(g)/\01hlotag#1\01/call"("g.py":5:6)))
    // CHECK-NEXT: %[[V2:.*]] = stablehlo.tanh %[[V1]] {mhlo.frontend_attributes = {k = "caller", o = "1"}} : tensor<f32> loc(fused<"m">["a.py":1:2, "b"("b.py":3:4), "c.py":5:6])
    %2 = stablehlo.tanh %1 : tensor<f32> loc(fused<"m">["a.py":1:2, "\01hlotag#1\01/b"("b.py":3:4), "c.py":5:6])
    // A name that was only a mark gives way to what it was around.
    // CHECK-NEXT: %[[V3:.*]] = stablehlo.abs %[[V2]] {mhlo.frontend_attributes = {k = "callee"}} : tensor<f32> loc("a.py":7:8)
    %3 = stablehlo.abs %2 : tensor<f32> loc("\01hlotag#0\01"("a.py":7:8))
    // CHECK-NEXT: %[[V4:.*]] = stablehlo.negate %[[V3]] {mhlo.frontend_attributes = {k = "callee"}} : tensor<f32> loc(unknown)
    %4 = stablehlo.negate %3 : tensor<f32> loc("\01hlotag#0\01")
    // CHECK-NEXT: %[[V5:.*]] = stablehlo.floor %[[V4]] : tensor<f32> loc("jit(f)/floor"("f.py":9:1))
    %5 = stablehlo.floor %4 : tensor<f32> loc("jit(f)/floor"("f.py":9:1))
    // CHECK-NEXT: return %[[V5]] : tensor<f32> loc({{"-":[0-9:]+}})
    return %5 : tensor<f32>
  // CHECK-NEXT: } loc({{"-":[0-9:]+}})
  }
// CHECK: } loc({{"-":[0-9:]+}})
}

// -----

// Constants, calls and what regions hold are tagged; modules, functions, block arguments and
// terminators only lose their marks.
// CHECK: module @kinds {
module @kinds attributes {hlotag.tags = [{entries = {k = "v"}}]} {
  // CHECK-LABEL: func.func @f(
  // CHECK-SAME: %[[ARG0:.*]]: tensor<4xf32> loc("x")) -> tensor<f32> {
  // CHECK-NEXT: %[[CST:.*]] = stablehlo.constant {mhlo.frontend_attributes = {k = "v"}} dense<0.000000e+00> : tensor<f32> loc("c")
  // CHECK-NEXT: %[[V0:.*]] = "stablehlo.reduce_window"(%[[ARG0]], %[[CST]]) <{window_dimensions = array<i64: 4>}> ({
  // CHECK-NEXT: ^bb0(%[[ARG1:.*]]: tensor<f32> loc("r"), %[[ARG2:.*]]: tensor<f32> loc("s"("s.py":1:1))):
  // CHECK-NEXT: %[[V2:.*]] = stablehlo.add %[[ARG1]], %[[ARG2]] {mhlo.frontend_attributes = {k = "v"}} : tensor<f32> loc("r")
  // CHECK-NEXT: stablehlo.return %[[V2]] : tensor<f32> loc("r")
  // CHECK-NEXT: }) : (tensor<4xf32>, tensor<f32>) -> tensor<1xf32> loc("outer")
  // CHECK-NEXT: %[[V1:.*]] = call @g(%[[CST]]) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32> loc("jit(g)")
  // CHECK-NEXT: return %[[V1]] : tensor<f32> loc("end")
  // CHECK-NEXT: } loc("f:"("f"))
  func.func @f(%x: tensor<4xf32> loc("\01hlotag#0\01/x")) -> tensor<f32> {
    %c = stablehlo.constant dense<0.0> : tensor<f32> loc("\01hlotag#0\01/c")
    %0 = "stablehlo.reduce_window"(%x, %c) <{window_dimensions = array<i64: 4>}> ({
    ^bb0(%a: tensor<f32> loc("\01hlotag#0\01/r"), %b: tensor<f32> loc("s"("s.py":1:1))):
      %1 = stablehlo.add %a, %b : tensor<f32> loc("\01hlotag#0\01/r")
      stablehlo.return %1 : tensor<f32> loc("\01hlotag#0\01/r")
    }) : (tensor<4xf32>, tensor<f32>) -> tensor<1xf32> loc("outer")
    %2 = func.call @g(%c) : (tensor<f32>) -> tensor<f32> loc("\01hlotag#0\01/jit(g)")
    return %2 : tensor<f32> loc("\01hlotag#0\01/end")
  } loc("f:"("\01hlotag#0\01/f"))
  // CHECK-LABEL: func.func private @g(
  // CHECK-SAME: %[[ARG0:.*]]: tensor<f32> loc({{"-":[0-9:]+}})) -> tensor<f32> {
  func.func private @g(%x: tensor<f32>) -> tensor<f32> {
    // CHECK-NEXT: return %[[ARG0]] : tensor<f32> loc({{"-":[0-9:]+}})
    return %x : tensor<f32>
  // CHECK-NEXT: } loc({{"-":[0-9:]+}})
  }
// CHECK: } loc("top")
} loc("\01hlotag#0\01/top")

// -----

// Without hlotag.tags nothing is looked at, and text that only looks like a mark stays.
// CHECK: module @untouched {
module @untouched attributes {} {
  // CHECK-LABEL: func.func @f(
  // CHECK-SAME: %[[ARG0:.*]]: tensor<f32> loc({{"-":[0-9:]+}})) -> tensor<f32> {
  func.func @f(%x: tensor<f32>) -> tensor<f32> {
    // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] : tensor<f32> loc("\01other#0/sin")
    %0 = stablehlo.sine %x : tensor<f32> loc("\01other#0/sin")
    // CHECK-NEXT: return %[[V0]] : tensor<f32> loc({{"-":[0-9:]+}})
    return %0 : tensor<f32>
  // CHECK-NEXT: } loc({{"-":[0-9:]+}})
  }
// CHECK: } loc({{"-":[0-9:]+}})
}

// -----

// An escape character that starts no mark stays also where marks are resolved.
// CHECK: module @foreign_escape {
module @foreign_escape attributes {hlotag.tags = []} {
  // CHECK-LABEL: func.func @f(
  // CHECK-SAME: %[[ARG0:.*]]: tensor<f32> loc({{"-":[0-9:]+}})) -> tensor<f32> {
  func.func @f(%x: tensor<f32>) -> tensor<f32> {
    // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] : tensor<f32> loc("a/\01/sin")
    %0 = stablehlo.sine %x : tensor<f32> loc("a/\01/sin")
    // CHECK-NEXT: return %[[V0]] : tensor<f32> loc({{"-":[0-9:]+}})
    return %0 : tensor<f32>
  // CHECK-NEXT: } loc({{"-":[0-9:]+}})
  }
// CHECK: } loc({{"-":[0-9:]+}})
}
