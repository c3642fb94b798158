// SPDX-License-Identifier: Apache-2.0
// Under mlir-opt each pass runs by itself, so that identities, which passes hand on in a run, are gone.
// UNSUPPORTED: mlir-opt
// RUN: hlotag-opt %s --hlotag-resolve --hlotag-propagate-autodiff --split-input-file | FileCheck %s --implicit-check-not=hlotag
// A second run in the same pipeline finds nothing to do.
// RUN: hlotag-opt %s --hlotag-resolve --hlotag-propagate-autodiff --hlotag-propagate-autodiff --split-input-file \
// RUN:   | FileCheck %s --implicit-check-not=hlotag

// Equal operations at equal places are told apart by what they were traced for; one whose forward operation is gone has no other's.
// CHECK-LABEL: func.func @equal
module attributes {hlotag.tags = [{forward = {}, derived = {}}]} {
  func.func @equal(%x: tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
    // CHECK-NEXT: stablehlo.sine %arg0 {mhlo.frontend_attributes = {k = "0"}}
    %0 = stablehlo.sine %x {mhlo.frontend_attributes = {k = "0"}} : tensor<f32> loc("jit(f)/jvp(\01hlotag#0:0e\01)/sin")
    // CHECK-NEXT: stablehlo.sine %0 {mhlo.frontend_attributes = {k = "1"}}
    %1 = stablehlo.sine %0 {mhlo.frontend_attributes = {k = "1"}} : tensor<f32> loc("jit(f)/jvp(\01hlotag#0:1e\01)/sin")
    // CHECK-NEXT: stablehlo.multiply %1, %0 {mhlo.frontend_attributes = {k = "0"}}
    %2 = stablehlo.multiply %1, %0 : tensor<f32> loc("jit(f)/transpose(jvp(\01hlotag#0:0\01))/mul")
    // CHECK-NEXT: stablehlo.multiply %1, %0 {mhlo.frontend_attributes = {k = "1"}}
    %3 = stablehlo.multiply %1, %0 : tensor<f32> loc("jit(f)/transpose(jvp(\01hlotag#0:1\01))/mul")
    // CHECK-NEXT: stablehlo.multiply %1, %0 : tensor
    %4 = stablehlo.multiply %1, %0 : tensor<f32> loc("jit(f)/transpose(jvp(\01hlotag#0:2\01))/mul")
    return %2, %3, %4 : tensor<f32>, tensor<f32>, tensor<f32>
  }
}

// -----

// What is in a loop or checkpoint is an operation of its own, also where JAX moved it out; what drives the loop is the loop's. All
// that a rule traced for a closed operation is that operation's.
// CHECK-LABEL: func.func @nested
module attributes {hlotag.tags = [{forward = {}, derived = {}}]} {
  func.func @nested(%x: tensor<f32>) -> tensor<f32> {
    // CHECK-NEXT: stablehlo.sine %arg0 {mhlo.frontend_attributes = {k = "inner"}}
    %0 = stablehlo.sine %x {mhlo.frontend_attributes = {k = "inner"}} : tensor<f32> loc("jvp(\01hlotag#0:3o.5e\01)/sin")
    // CHECK-NEXT: stablehlo.add {{.*}}k = "loop"
    %1 = stablehlo.add %0, %0 {mhlo.frontend_attributes = {k = "loop"}} : tensor<f32> loc("jvp(\01hlotag#0:3o\01)/add")
    // CHECK-NEXT: stablehlo.tanh {{.*}}k = "rule"
    %2 = stablehlo.tanh %1 {mhlo.frontend_attributes = {k = "rule"}} : tensor<f32> loc("jvp(\01hlotag#0:4.6\01)/tanh")
    // CHECK-NEXT: stablehlo.multiply {{.*}}k = "inner"
    %3 = stablehlo.multiply %1, %0 : tensor<f32> loc("transpose(jvp(\01hlotag#0:7o\01/while/body/\01hlotag#0:3o.5\01))/mul")
    // CHECK-NEXT: stablehlo.subtract {{.*}}k = "loop"
    %4 = stablehlo.subtract %3, %0 : tensor<f32> loc("transpose(jvp(\01hlotag#0:3o\01))/while/sub")
    // CHECK-NEXT: stablehlo.divide {{.*}}k = "rule"
    %5 = stablehlo.divide %4, %0 : tensor<f32> loc("transpose(jvp(\01hlotag#0:4.7\01))/div")
    // CHECK-NEXT: stablehlo.negate {{.*}}k = "inner"
    %6 = stablehlo.negate %5 : tensor<f32> loc("transpose(jvp(\01hlotag#0:5\01))/neg")
    // CHECK-NEXT: stablehlo.abs %{{[0-9]+}} : tensor
    %7 = stablehlo.abs %6 : tensor<f32> loc("transpose(jvp(\01hlotag#0:8o.5\01))/abs")
    return %7 : tensor<f32>
  }
}

// -----

// Operations of a shared function are the function's; its calls are told apart.
// CHECK-LABEL: func.func public @calls
module attributes {hlotag.tags = [{forward = {}, derived = {}}]} {
  func.func public @calls(%x: tensor<f32>) -> tensor<f32> {
    // CHECK-NEXT: call @inner{{.*}}k = "first"
    %0 = func.call @inner(%x) {mhlo.frontend_attributes = {k = "first"}} : (tensor<f32>) -> tensor<f32> loc("jvp(\01hlotag#0:0j\01jit(inner))")
    // CHECK-NEXT: call @inner(%0) : (
    %1 = func.call @inner(%0) : (tensor<f32>) -> tensor<f32> loc("jvp(\01hlotag#0:1j\01jit(inner))")
    // CHECK-NEXT: call @inner_0(%1) : (
    %2 = func.call @inner_0(%1) : (tensor<f32>) -> tensor<f32> loc("transpose(jvp(\01hlotag#0:1j\01jit(inner)))")
    // CHECK-NEXT: call @inner_0{{.*}}k = "first"
    %3 = func.call @inner_0(%2) : (tensor<f32>) -> tensor<f32> loc("transpose(jvp(\01hlotag#0:0j\01jit(inner)))")
    return %3 : tensor<f32>
  }
  // CHECK: func.func private @inner(
  func.func private @inner(%x: tensor<f32>) -> tensor<f32> {
    // CHECK-NEXT: stablehlo.sine {{.*}}k = "sine"
    %0 = stablehlo.sine %x {mhlo.frontend_attributes = {k = "sine"}} : tensor<f32> loc("\01hlotag#0:0j.2e\01/sin")
    return %0 : tensor<f32>
  }
  // CHECK: func.func private @inner_0(
  func.func private @inner_0(%x: tensor<f32>) -> tensor<f32> {
    // CHECK-NEXT: stablehlo.cosine {{.*}}k = "sine"
    %0 = stablehlo.cosine %x : tensor<f32> loc("\01hlotag#0:1j.2\01/cos")
    return %0 : tensor<f32>
  }
}

// -----

// A function gets no key that its call removed. A constant gives its entries to no derived operation, and gets those that all its
// users have.
// CHECK-LABEL: func.func public @unset
module attributes {hlotag.tags = [{forward = {}, derived = {}}]} {
  func.func public @unset(%x: tensor<f32>) -> tensor<f32> {
    %0 = func.call @inner(%x) : (tensor<f32>) -> tensor<f32> loc("jvp(\01hlotag#0:0j\01jit(inner))")
    // CHECK: call @inner_0(%0) {mhlo.frontend_attributes = {k = ["hlotag.unset"]}}
    %1 = func.call @inner_0(%0) {mhlo.frontend_attributes = {k = ["hlotag.unset"]}} : (tensor<f32>) -> tensor<f32> loc("transpose(jvp(\01hlotag#0:0j\01jit(inner)))")
    return %1 : tensor<f32>
  }
  func.func private @inner(%x: tensor<f32>) -> tensor<f32> {
    %c = stablehlo.constant {mhlo.frontend_attributes = {c = "1"}} dense<2.0> : tensor<f32> loc("\01hlotag#0:0j.2e\01/mul")
    %0 = stablehlo.multiply %x, %c {mhlo.frontend_attributes = {k = "v", m = "w"}} : tensor<f32> loc("\01hlotag#0:0j.2e\01/mul")
    return %0 : tensor<f32>
  }
  // CHECK: func.func private @inner_0(
  func.func private @inner_0(%x: tensor<f32>) -> tensor<f32> {
    // CHECK-NEXT: stablehlo.constant {mhlo.frontend_attributes = {m = "w"}}
    %c = stablehlo.constant dense<2.0> : tensor<f32>
    // CHECK-NEXT: stablehlo.multiply {{.*}} {mhlo.frontend_attributes = {m = "w"}}
    %0 = stablehlo.multiply %x, %c : tensor<f32> loc("\01hlotag#0:0j.2\01/mul")
    return %0 : tensor<f32>
  }
}
