// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --hlotag-resolve --split-input-file | FileCheck %s --implicit-check-not=hlotag --implicit-check-not=frontend_attributes
// A second run finds nothing to do.
// RUN: hlotag-opt %s --hlotag-resolve --hlotag-resolve --split-input-file | FileCheck %s --implicit-check-not=hlotag --implicit-check-not=frontend_attributes
// RUN: hlotag-opt %s --hlotag-resolve --split-input-file 2>&1 | FileCheck %s --check-prefix=REPORT

// A tag's own entries win over rules, and the last rule over earlier ones.
// REPORT: warning: rule 2 (r.toml:4) sets 'b' to "2" where rule 1 sets it to "1"; the later rule wins
// REPORT-NOT: warning
// REPORT: remark: rule 3 matched nothing: {op = "x"}
// CHECK-LABEL: module @precedence
module @precedence attributes {
  hlotag.rules = [{name = "rule 1", text = "{}"}, {name = "rule 2 (r.toml:4)", text = "{}"}, {name = "rule 3", text = "{op = \"x\"}"}],
  hlotag.tags = [{entries = {a = "own"}, rules = [
    {rule = "0", entries = {a = "1", b = "1", c = "1"}},
    {rule = "1", entries = {a = "own", b = "2"}}
  ]}]
} {
  func.func @f(%x: tensor<f32>) -> tensor<f32> {
    // CHECK: stablehlo.sine {{.*}} {mhlo.frontend_attributes = {a = "own", b = "2", c = "1"}}
    %0 = stablehlo.sine %x : tensor<f32> loc("\01hlotag#0\01/sin")
    // CHECK: stablehlo.sine {{.*}} {mhlo.frontend_attributes = {a = "own", b = "2", c = "1"}}
    %1 = stablehlo.sine %0 : tensor<f32> loc("\01hlotag#0\01/sin")
    return %1 : tensor<f32>
  }
}

// -----

// A deeper rule comes later, and wins without a warning.
// REPORT-NOT: warning
// CHECK-LABEL: module @depth
module @depth attributes {
  hlotag.rules = [{name = "rule 1", text = "{}"}, {name = "rule 2", text = "{}"}],
  hlotag.tags = [{entries = {}, rules = [
    {rule = "1", entries = {k = "outer"}},
    {rule = "0", depth = "1", entries = {k = "inner"}}
  ]}]
} {
  func.func @f(%x: tensor<f32>) -> tensor<f32> {
    // CHECK: stablehlo.sine {{.*}} {mhlo.frontend_attributes = {k = "inner"}}
    %0 = stablehlo.sine %x : tensor<f32> loc("\01hlotag#0\01/sin")
    return %0 : tensor<f32>
  }
}

// -----

// By kind of operation, with and without the dialect, and except for kinds.
// CHECK-LABEL: module @kinds
module @kinds attributes {
  hlotag.rules = [{name = "rule 1", text = "{}"}, {name = "rule 2", text = "{}"}, {name = "rule 3", text = "{}"}],
  hlotag.tags = [{entries = {}, rules = [
    {rule = "0", op = "sine", entries = {a = "1"}},
    {rule = "1", op = "stablehlo.c*", entries = {b = "2"}},
    {rule = "2", op = "*", unless = ["sine", "stablehlo.tan*"], entries = {c = "3"}}
  ]}]
} {
  func.func @f(%x: tensor<f32>) -> tensor<f32> {
    // CHECK: stablehlo.sine {{.*}} {mhlo.frontend_attributes = {a = "1"}}
    %0 = stablehlo.sine %x : tensor<f32> loc("\01hlotag#0\01/sin")
    // CHECK: stablehlo.cosine {{.*}} {mhlo.frontend_attributes = {b = "2", c = "3"}}
    %1 = stablehlo.cosine %0 : tensor<f32> loc("\01hlotag#0\01/cos")
    // CHECK: stablehlo.tanh %{{[0-9]+}} : tensor<f32>
    %2 = stablehlo.tanh %1 : tensor<f32> loc("\01hlotag#0\01/tanh")
    // CHECK: stablehlo.abs {{.*}} {mhlo.frontend_attributes = {c = "3"}}
    %3 = stablehlo.abs %2 : tensor<f32> loc("\01hlotag#0\01/abs")
    return %3 : tensor<f32>
  }
}

// -----

// The body of a reduction is part of it; that of a loop has operations of its own.
// CHECK-LABEL: module @bodies
module @bodies attributes {
  hlotag.rules = [{name = "rule 1", text = "{}"}, {name = "rule 2", text = "{}"}],
  hlotag.tags = [{entries = {}, rules = [
    {rule = "0", op = "add", entries = {a = "1"}}, {rule = "1", entries = {b = "2"}}
  ]}]
} {
  func.func @f(%x: tensor<4xf32>, %zero: tensor<f32>, %i: tensor<i32>) -> (tensor<f32>, tensor<i32>) {
    // CHECK: stablehlo.reduce
    %0 = "stablehlo.reduce"(%x, %zero) <{dimensions = array<i64: 0>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      // CHECK: stablehlo.add {{.*}} {mhlo.frontend_attributes = {b = "2"}}
      %2 = stablehlo.add %a, %b : tensor<f32> loc("\01hlotag#0\01/reduce_sum")
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32> loc("\01hlotag#0\01/reduce_sum")
    %1 = stablehlo.while(%j = %i) : tensor<i32>
    cond {
      %2 = stablehlo.compare LT, %j, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      // CHECK: stablehlo.add {{.*}} {mhlo.frontend_attributes = {a = "1", b = "2"}}
      %2 = stablehlo.add %j, %j : tensor<i32> loc("\01hlotag#0\01/add")
      stablehlo.return %2 : tensor<i32>
    }
    return %0, %1 : tensor<f32>, tensor<i32>
  }
}

// -----

// Of nested marks, the innermost one with rules decides by kind; rules for all operations of the others fill in.
// CHECK-LABEL: module @nested
module @nested attributes {
  hlotag.rules = [{name = "rule 1", text = "{}"}, {name = "rule 2", text = "{}"}],
  hlotag.tags = [
    {entries = {}, rules = [
      {rule = "0", op = "sine", entries = {a = "outer"}},
      {rule = "1", entries = {b = "outer", c = "outer"}}]},
    {entries = {d = "inner"}, rules = [{rule = "1", entries = {b = "inner"}}]},
    {entries = {e = "inner"}}
  ]
} {
  func.func @f(%x: tensor<f32>) -> tensor<f32> {
    // CHECK: stablehlo.sine {{.*}} {mhlo.frontend_attributes = {b = "inner", c = "outer", d = "inner"}}
    %0 = stablehlo.sine %x : tensor<f32> loc("\01hlotag#0\01/while/\01hlotag#1\01/sin")
    // CHECK: stablehlo.sine {{.*}} {mhlo.frontend_attributes = {a = "outer", b = "outer", c = "outer", e = "inner"}}
    %1 = stablehlo.sine %0 : tensor<f32> loc("\01hlotag#0\01/while/\01hlotag#2\01/sin")
    // A callee's mark is within its caller's.
    // CHECK: stablehlo.sine {{.*}} {mhlo.frontend_attributes = {b = "inner", c = "outer", d = "inner"}}
    %2 = stablehlo.sine %1 : tensor<f32> loc(callsite("\01hlotag#1\01/sin" at "\01hlotag#0\01/call"))
    return %2 : tensor<f32>
  }
}

// -----

// One rule gives an operation different entries by its kind: no conflict.
// CHECK-LABEL: @one_rule
// CHECK: stablehlo.sine {{.*}}{k = "2"}
// REPORT-NOT: warning
module attributes {
  hlotag.rules = [{name = "rule 1", text = "{op = \22sine\22}"}],
  hlotag.tags = [{entries = {}, rules = [
    {rule = "0", op = "s*", entries = {k = "1"}}, {rule = "0", op = "sine", entries = {k = "2"}}]}]} {
  func.func @one_rule(%x: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.sine %x : tensor<f32> loc("jit(f)/\01hlotag#0\01/sin")
    return %0 : tensor<f32>
  }
}
