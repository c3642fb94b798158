// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --split-input-file --verify-diagnostics
// Not split, the syntax error ends parsing: what the other comments expect does not come.
// RUN: not hlotag-opt %s --verify-diagnostics 2>&1 | FileCheck %s

// CHECK: verify_diagnostics.mlir:[[#@LINE+2]]: error: expected error "use of undeclared SSA value name" was not produced
func.func @f() -> i32 {
  // expected-error@below {{use of undeclared SSA value name}}
  return %0 : i32
}

// -----

// expected-error-re@+2 {{custom op '{{f.o}}' is unknown}}

foo

// -----

// expected-error@below {{doesn't match function result type}}
// expected-note@below {{see current operation}}
func.func @g(%x: tensor<f32>) -> tensor<i32> { return %x : tensor<f32> }
