// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --hlotag-resolve --split-input-file --mlir-print-debuginfo --mlir-print-local-scope \
// RUN:   | FileCheck %s --implicit-check-not=hlotag
// A second run finds nothing to do.
// RUN: hlotag-opt %s --hlotag-resolve --hlotag-resolve --split-input-file --mlir-print-debuginfo \
// RUN:   --mlir-print-local-scope | FileCheck %s --implicit-check-not=hlotag

// A mark alone in its transform, between elements, first and last.
// CHECK-LABEL: module @places
module @places attributes {hlotag.tags = [{forward = {k = "v"}, derived = {k = "w"}}]} {
  func.func @f(%x: tensor<f32>) -> tensor<f32> {
    // CHECK: stablehlo.sine {{.*}} {mhlo.frontend_attributes = {k = "v"}} {{.*}} loc("jit(f)/jvp()/sin")
    %0 = stablehlo.sine %x : tensor<f32> loc("jit(f)/jvp(\01hlotag#0\01)/sin")
    // CHECK: stablehlo.cosine {{.*}} {mhlo.frontend_attributes = {k = "v"}} {{.*}} loc("jit(f)/while/cos")
    %1 = stablehlo.cosine %0 : tensor<f32> loc("jit(f)/\01hlotag#0\01/while/cos")
    // CHECK: stablehlo.tanh {{.*}} {mhlo.frontend_attributes = {k = "v"}} {{.*}} loc("tanh")
    %2 = stablehlo.tanh %1 : tensor<f32> loc("\01hlotag#0\01/tanh")
    // CHECK: stablehlo.abs {{.*}} {mhlo.frontend_attributes = {k = "v"}} {{.*}} loc("jit(f)")
    %3 = stablehlo.abs %2 : tensor<f32> loc("jit(f)/\01hlotag#0\01")
    // CHECK: stablehlo.negate {{.*}} {mhlo.frontend_attributes = {k = "v"}} {{.*}} loc("jit(f)/vmap(body)/neg")
    %4 = stablehlo.negate %3 : tensor<f32> loc("jit(f)/vmap(\01hlotag#0\01body)/neg")
    return %4 : tensor<f32>
  }
}

// -----

// Under transpose(...), inside the bracket or after it, the derived entries.
// CHECK-LABEL: module @transposed
module @transposed attributes {hlotag.tags = [{forward = {k = "v"}, derived = {k = "w"}}]} {
  func.func @f(%x: tensor<f32>) -> tensor<f32> {
    // CHECK: stablehlo.sine {{.*}}k = "w"{{.*}} loc("jit(f)/transpose(jvp())/sin")
    %0 = stablehlo.sine %x : tensor<f32> loc("jit(f)/transpose(jvp(\01hlotag#0\01))/sin")
    // CHECK: stablehlo.cosine {{.*}}k = "w"{{.*}} loc("vmap(transpose(a/b))/cos")
    %1 = stablehlo.cosine %0 : tensor<f32> loc("vmap(transpose(a/\01hlotag#0\01/b))/cos")
    // A function called transpose is none, nor is a scope whose name ends so.
    // CHECK: stablehlo.tanh {{.*}}k = "v"{{.*}} loc("jit(transpose)/tanh")
    %2 = stablehlo.tanh %1 : tensor<f32> loc("jit(transpose)/\01hlotag#0\01/tanh")
    // CHECK: stablehlo.abs {{.*}}k = "v"{{.*}} loc("my_transpose(a)/abs")
    %3 = stablehlo.abs %2 : tensor<f32> loc("my_transpose(\01hlotag#0\01/a)/abs")
    // CHECK: stablehlo.negate {{.*}}k = "w"{{.*}} loc("transpose(jvp(layer))/neg")
    %4 = stablehlo.negate %3 : tensor<f32> loc("transpose(jvp(layer))/\01hlotag#0\01/neg")
    // Nor is one that lowering has escaped.
    // CHECK: stablehlo.floor {{.*}}k = "v"{{.*}} loc("jit(f)/transpose\01%28a\01%29/floor")
    %5 = stablehlo.floor %4 : tensor<f32> loc("jit(f)/transpose\01%28a\01%29/\01hlotag#0\01/floor")
    // CHECK: stablehlo.ceil {{.*}}k = "v"{{.*}} loc("jit(f)/\01%01hlotag#1\01%01/ceil")
    %6 = stablehlo.ceil %5 : tensor<f32> loc("jit(f)/\01hlotag#0\01\01%01hlotag#1\01%01/ceil")
    return %6 : tensor<f32>
  }
}

// -----

// What a function's own names do not say, its calls do, if they agree.
// CHECK-LABEL: module @functions
module @functions attributes {hlotag.tags = [{forward = {k = "v"}, derived = {k = "w"}}]} {
  func.func @main(%x: tensor<f32>) -> tensor<f32> {
    %0 = func.call @forward(%x) : (tensor<f32>) -> tensor<f32> loc("jit(f)/jvp(jit(g))")
    %1 = func.call @backward(%0) : (tensor<f32>) -> tensor<f32> loc("jit(f)/transpose(jvp(jit(g)))")
    %2 = func.call @both(%1) : (tensor<f32>) -> tensor<f32> loc("jit(f)/jvp(jit(h))")
    %3 = func.call @both(%2) : (tensor<f32>) -> tensor<f32> loc("jit(f)/transpose(jvp(jit(h)))")
    return %3 : tensor<f32>
  }
  // CHECK: func.func private @forward
  func.func private @forward(%x: tensor<f32>) -> tensor<f32> {
    // CHECK: stablehlo.sine {{.*}}k = "v"
    %0 = stablehlo.sine %x : tensor<f32> loc("\01hlotag#0\01/sin")
    return %0 : tensor<f32>
  }
  // CHECK: func.func private @backward
  func.func private @backward(%x: tensor<f32>) -> tensor<f32> {
    // CHECK: stablehlo.sine {{.*}}k = "w"
    %0 = stablehlo.sine %x : tensor<f32> loc("\01hlotag#0\01/sin")
    return %0 : tensor<f32>
  }
  // CHECK: func.func private @both
  func.func private @both(%x: tensor<f32>) -> tensor<f32> {
    // CHECK: stablehlo.sine {{.*}}k = "v"
    %0 = stablehlo.sine %x : tensor<f32> loc("\01hlotag#0\01/sin")
    return %0 : tensor<f32>
  }
}

// -----

// The inner mark wins; of the outer one stays what the inner one does not say.
// CHECK-LABEL: module @nested
module @nested attributes {hlotag.tags = [
  {forward = {a = "outer", b = "outer"}, derived = {}},
  {forward = {a = "inner", c = "inner"}, derived = {}}
]} {
  func.func @f(%x: tensor<f32>) -> tensor<f32> {
    // CHECK: stablehlo.sine {{.*}} {mhlo.frontend_attributes = {a = "inner", b = "outer", c = "inner"}} {{.*}} loc("jit(f)/sin")
    %0 = stablehlo.sine %x : tensor<f32> loc("jit(f)/\01hlotag#0\01/\01hlotag#1\01/sin")
    // CHECK: stablehlo.cosine {{.*}} {mhlo.frontend_attributes = {a = "outer", b = "outer", c = "inner"}} {{.*}} loc("cos")
    %1 = stablehlo.cosine %0 : tensor<f32> loc("\01hlotag#1\01/\01hlotag#0\01/cos")
    // What the operation has wins over both.
    // CHECK: stablehlo.tanh {{.*}} {mhlo.frontend_attributes = {a = "own", b = "outer", z = "own"}} {{.*}} loc("tanh")
    %2 = stablehlo.tanh %1 {mhlo.frontend_attributes = {a = "own", z = "own"}} : tensor<f32> loc("\01hlotag#0\01/tanh")
    // Derived operations get none of these keys, also not from passes that infer.
    // CHECK: stablehlo.abs {{.*}} {mhlo.frontend_attributes = {a = ["hlotag.unset"], c = ["hlotag.unset"]}} {{.*}} loc("transpose()/abs")
    %3 = stablehlo.abs %2 : tensor<f32> loc("transpose(\01hlotag#1\01)/abs")
    return %3 : tensor<f32>
  }
}

// -----

// The mark of a name wins over those in the location that it is around, and of fused locations the
// first wins; of the others stays what it does not say. So it is for derived operations too.
// CHECK-LABEL: module @precedence
module @precedence attributes {hlotag.tags = [
  {forward = {a = "0", b = "0"}, derived = {a = "d0", b = "d0"}},
  {forward = {a = "1", c = "1"}, derived = {a = "d1", c = "d1"}},
  {forward = {a = "2", d = "2"}, derived = {a = "d2", d = "d2"}}
]} {
  func.func @f(%x: tensor<f32>) -> tensor<f32> {
    // CHECK: stablehlo.sine {{.*}} {mhlo.frontend_attributes = {a = "0", b = "0", c = "1"}}
    %0 = stablehlo.sine %x : tensor<f32> loc("\01hlotag#0\01/sin"("\01hlotag#1\01/x"))
    // CHECK: stablehlo.cosine {{.*}} {mhlo.frontend_attributes = {a = "1", b = "0", c = "1"}}
    %1 = stablehlo.cosine %0 : tensor<f32> loc(fused["\01hlotag#1\01/cos", "\01hlotag#0\01/x"])
    // CHECK: stablehlo.tanh {{.*}} {mhlo.frontend_attributes = {a = "0", b = "0", c = "1", d = "2"}}
    %2 = stablehlo.tanh %1 : tensor<f32> loc("\01hlotag#0\01/tanh"("\01hlotag#1\01/x"("\01hlotag#2\01/y"("f.py":1:1))))
    // The location inside is known from the operation before.
    // CHECK: stablehlo.abs {{.*}} {mhlo.frontend_attributes = {a = "1", c = "1", d = "2"}}
    %3 = stablehlo.abs %2 : tensor<f32> loc("\01hlotag#1\01/abs"("\01hlotag#2\01/y"("f.py":1:1)))
    // CHECK: stablehlo.negate {{.*}} {mhlo.frontend_attributes = {a = "d0", b = "d0", c = "d1"}}
    %4 = stablehlo.negate %3 : tensor<f32> loc("transpose(\01hlotag#0\01)/neg"("\01hlotag#1\01/x"))
    // CHECK: stablehlo.floor {{.*}} {mhlo.frontend_attributes = {a = "d1", b = "d0", c = "d1"}}
    %5 = stablehlo.floor %4 : tensor<f32> loc(fused["transpose(\01hlotag#1\01)/floor", "\01hlotag#0\01/x"])
    return %5 : tensor<f32>
  }
}

// -----

// Marks at any depth of a location; all else in it stays.
// CHECK-LABEL: module @nests
module @nests attributes {hlotag.tags = [
  {forward = {k = "callee"}, derived = {}}, {forward = {k = "caller", o = "1"}, derived = {}}
]} {
  func.func @f(%x: tensor<f32>) -> tensor<f32> {
    // CHECK: stablehlo.sine {{.*}}k = "callee"{{.*}} loc("sin:"("jit(f)/sin"(callsite("f"("f.py":3:4 to :9) at "g"("g.py":5:6)))))
    %0 = stablehlo.sine %x : tensor<f32> loc("sin:"("jit(f)/\01hlotag#0\01/sin"(callsite("f"("f.py":3:4 to :9) at "g"("g.py":5:6)))))
    // CHECK: stablehlo.cosine {{.*}} {mhlo.frontend_attributes = {k = "callee", o = "1"}} {{.*}} loc(callsite("cos" at "jit(g)/call"("g.py":5:6)))
    %1 = stablehlo.cosine %0 : tensor<f32> loc(callsite("\01hlotag#0\01/cos" at "jit(g)/\01hlotag#1\01/call"("g.py":5:6)))
    // CHECK: stablehlo.tanh {{.*}}k = "caller"{{.*}} loc(fused<"m">["a.py":1:2, "b"("b.py":3:4)])
    %2 = stablehlo.tanh %1 : tensor<f32> loc(fused<"m">["a.py":1:2, "\01hlotag#1\01/b"("b.py":3:4)])
    // A name that was only a mark gives way to what it was around.
    // CHECK: stablehlo.abs {{.*}}k = "callee"{{.*}} loc("a.py":7:8)
    %3 = stablehlo.abs %2 : tensor<f32> loc("\01hlotag#0\01"("a.py":7:8))
    // CHECK: stablehlo.negate {{.*}}k = "callee"{{.*}} loc(unknown)
    %4 = stablehlo.negate %3 : tensor<f32> loc("\01hlotag#0\01")
    // CHECK: stablehlo.floor %{{[^{]*}} loc("jit(f)/floor"("f.py":9:1))
    %5 = stablehlo.floor %4 : tensor<f32> loc("jit(f)/floor"("f.py":9:1))
    return %5 : tensor<f32>
  }
}

// -----

// Constants, calls and what regions hold are tagged; modules, functions, block arguments and
// terminators only lose their marks.
// CHECK-LABEL: module @kinds
module @kinds attributes {hlotag.tags = [{forward = {k = "v"}, derived = {}}]} {
  // CHECK: func.func @f(%{{.*}}: tensor<4xf32> loc("x"))
  func.func @f(%x: tensor<4xf32> loc("\01hlotag#0\01/x")) -> tensor<f32> {
    // CHECK: stablehlo.constant {mhlo.frontend_attributes = {k = "v"}} dense<0.000000e+00>
    %c = stablehlo.constant dense<0.0> : tensor<f32> loc("\01hlotag#0\01/c")
    // CHECK: "stablehlo.reduce_window"
    // CHECK-NEXT: ^bb0(%{{.*}}: tensor<f32> loc("r"), %{{.*}}: tensor<f32> loc("s"("s.py":1:1))):
    // CHECK-NEXT: stablehlo.add {{.*}} {mhlo.frontend_attributes = {k = "v"}}
    // CHECK-NEXT: stablehlo.return %{{[^{]*}} loc("r")
    %0 = "stablehlo.reduce_window"(%x, %c) <{window_dimensions = array<i64: 4>}> ({
    ^bb0(%a: tensor<f32> loc("\01hlotag#0\01/r"), %b: tensor<f32> loc("s"("s.py":1:1))):
      %1 = stablehlo.add %a, %b : tensor<f32> loc("\01hlotag#0\01/r")
      stablehlo.return %1 : tensor<f32> loc("\01hlotag#0\01/r")
    }) : (tensor<4xf32>, tensor<f32>) -> tensor<1xf32> loc("outer")
    // CHECK: call @g{{.*}} {mhlo.frontend_attributes = {k = "v"}}
    %2 = func.call @g(%c) : (tensor<f32>) -> tensor<f32> loc("\01hlotag#0\01/jit(g)")
    // CHECK: return %{{[^{]*}} loc("end")
    return %2 : tensor<f32> loc("\01hlotag#0\01/end")
  // CHECK-NEXT: } loc("f:"("f"))
  } loc("f:"("\01hlotag#0\01/f"))
  // CHECK: func.func private @g
  func.func private @g(%x: tensor<f32>) -> tensor<f32> {
    return %x : tensor<f32>
  }
// CHECK: } loc("top")
} loc("\01hlotag#0\01/top")

// -----

// Without hlotag.tags nothing is looked at, and text that only looks like a mark stays.
// CHECK-LABEL: module @untouched
module @untouched attributes {} {
  func.func @f(%x: tensor<f32>) -> tensor<f32> {
    // CHECK: stablehlo.sine %{{[^{]*}} loc("\01other#0/sin")
    %0 = stablehlo.sine %x : tensor<f32> loc("\01other#0/sin")
    return %0 : tensor<f32>
  }
}

// -----

// An escape character that starts no mark stays also where marks are resolved.
// CHECK-LABEL: module @foreign_escape
module @foreign_escape attributes {hlotag.tags = []} {
  func.func @f(%x: tensor<f32>) -> tensor<f32> {
    // CHECK: stablehlo.sine %{{[^{]*}} loc("a/\01/sin")
    %0 = stablehlo.sine %x : tensor<f32> loc("a/\01/sin")
    return %0 : tensor<f32>
  }
}
