// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --hlotag-complete-lowering | FileCheck %s
// A second run finds nothing to do.
// RUN: hlotag-opt %s --hlotag-complete-lowering --hlotag-complete-lowering | FileCheck %s
// RUN: hlotag-opt %s --hlotag-complete-lowering=seeds=attached | FileCheck %s --check-prefix=ATTACHED

// The broadcast is a helper of the product; the constant, in the enclosing location, feeds only it.
// CHECK-LABEL: func.func @helper
func.func @helper(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: stablehlo.constant {mhlo.frontend_attributes = {k = "v"}} dense<3.000000e+00>
  %c = stablehlo.constant dense<3.0> : tensor<f32> loc("jit(f)")
  // CHECK: stablehlo.broadcast_in_dim {{.*}} {mhlo.frontend_attributes = {k = "v"}}
  %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<4xf32> loc("jit(f)/mul")
  %1 = stablehlo.multiply %x, %0 {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc("jit(f)/mul")
  return %1 : tensor<4xf32>
}

// A constant with other users has no tag, nor has what another equation computed.
// CHECK-LABEL: func.func @others
func.func @others(%x: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  // CHECK: stablehlo.constant dense<3.000000e+00>
  %c = stablehlo.constant dense<3.0> : tensor<f32> loc("jit(f)")
  // CHECK: stablehlo.sine %arg0 : tensor<f32>
  %0 = stablehlo.sine %x : tensor<f32> loc("jit(f)/sin")
  %1 = stablehlo.multiply %0, %c {mhlo.frontend_attributes = {k = "v"}} : tensor<f32> loc("jit(f)/mul")
  // CHECK: stablehlo.abs %{{[0-9]+}} : tensor<f32>
  %2 = stablehlo.abs %1 : tensor<f32> loc("jit(f)/abs")
  // CHECK: stablehlo.add %{{.*}} : tensor<f32>
  %3 = stablehlo.add %2, %c : tensor<f32> loc("jit(f)/add")
  return %2, %3 : tensor<f32>, tensor<f32>
}

// `for ...: x = x * 3` with the second of three iterations tagged: all have one location.
// CHECK-LABEL: func.func @loop
func.func @loop(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = stablehlo.constant dense<3.0> : tensor<f32> loc("jit(f)")
  // CHECK: stablehlo.broadcast_in_dim %{{[a-z]*}}, dims = [] :
  %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<4xf32> loc("jit(f)/jvp(a/b)/mul")
  // CHECK: stablehlo.multiply %arg0, %{{[0-9]}} : tensor<4xf32>
  %1 = stablehlo.multiply %x, %0 : tensor<4xf32> loc("jit(f)/jvp(a/b)/mul")
  // CHECK: stablehlo.broadcast_in_dim {{.*}}k = "v"
  %2 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<4xf32> loc("jit(f)/jvp(a/b)/mul")
  %3 = stablehlo.multiply %1, %2 {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc("jit(f)/jvp(a/b)/mul")
  // CHECK: stablehlo.broadcast_in_dim %{{[a-z]*}}, dims = [] :
  %4 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<4xf32> loc("jit(f)/jvp(a/b)/mul")
  // CHECK: stablehlo.multiply %{{.*}} : tensor<4xf32>
  %5 = stablehlo.multiply %3, %4 : tensor<4xf32> loc("jit(f)/jvp(a/b)/mul")
  return %5 : tensor<4xf32>
}

// A call with the location may be of another iteration, too.
// CHECK-LABEL: func.func @loop_of_calls
func.func @loop_of_calls(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: call @inner(%arg0) : (tensor<f32>)
  %0 = call @inner(%x) : (tensor<f32>) -> tensor<f32> loc("jit(f)/mul")
  %1 = stablehlo.multiply %0, %x {mhlo.frontend_attributes = {k = "v"}} : tensor<f32> loc("jit(f)/mul")
  return %1 : tensor<f32>
}

// x ** 3: the primitive does not name the operation, so the other product is a helper.
// CHECK-LABEL: func.func @power
func.func @power(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-COUNT-2: stablehlo.multiply {{.*}}k = "v"
  %0 = stablehlo.multiply %x, %x : tensor<f32> loc("jit(f)/integer_pow")
  %1 = stablehlo.multiply %0, %x {mhlo.frontend_attributes = {k = "v"}} : tensor<f32> loc("jit(f)/integer_pow")
  return %1 : tensor<f32>
}

// Several results of one equation share helpers. A dead helper, found from what it is computed
// from, belongs too. The key of the library's own call is not extended.
// CHECK-LABEL: func.func @results
func.func @results(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK: custom_call @lapack{{.*}}{k = "v", num_batch_dims = "0"}
  %0:3 = stablehlo.custom_call @lapack(%x) {mhlo.frontend_attributes = {num_batch_dims = "0"}} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xi1>) loc("svd")
  // CHECK: stablehlo.not {{.*}} {mhlo.frontend_attributes = {k = "v"}}
  %dead = stablehlo.not %0#2 : tensor<4xi1> loc("svd")
  // CHECK-COUNT-2: stablehlo.select {{.*}} {mhlo.frontend_attributes = {k = "v"}}
  %1 = stablehlo.select %0#2, %0#0, %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xi1>, tensor<4xf32> loc("svd")
  %2 = stablehlo.select %0#2, %0#1, %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xi1>, tensor<4xf32> loc("svd")
  return %1, %2 : tensor<4xf32>, tensor<4xf32>
}

// Present keys win, and what two equations put on one constant is what they share.
// CHECK-LABEL: func.func @keys
func.func @keys(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK: stablehlo.constant {mhlo.frontend_attributes = {a = "1"}}
  %c = stablehlo.constant dense<3.0> : tensor<f32> loc("jit(f)")
  // CHECK: stablehlo.broadcast_in_dim {{.*}} {mhlo.frontend_attributes = {a = "1", k = "own"}}
  %0 = stablehlo.broadcast_in_dim %c, dims = [] {mhlo.frontend_attributes = {k = "own"}} : (tensor<f32>) -> tensor<4xf32> loc("jit(f)/mul")
  %1 = stablehlo.multiply %x, %0 {mhlo.frontend_attributes = {a = "1", k = "v"}} : tensor<4xf32> loc("jit(f)/mul")
  // CHECK: stablehlo.broadcast_in_dim {{.*}} {mhlo.frontend_attributes = {a = "1", k = "w"}}
  %2 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<4xf32> loc("jit(f)/add")
  %3 = stablehlo.add %x, %2 {mhlo.frontend_attributes = {a = "1", k = "w"}} : tensor<4xf32> loc("jit(f)/add")
  return %1, %3 : tensor<4xf32>, tensor<4xf32>
}

// A broadcast in the enclosing location goes with its constant; one of its own is an equation.
// CHECK-LABEL: func.func @broadcasts
func.func @broadcasts(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: stablehlo.constant {mhlo.frontend_attributes = {k = "v"}} dense<1.0
  // CHECK: stablehlo.broadcast_in_dim {{.*}}k = "v"
  // CHECK: stablehlo.constant dense<2.0
  // CHECK: stablehlo.broadcast_in_dim %{{[a-z_0-9]*}}, dims = [] :
  %c = stablehlo.constant dense<1.0> : tensor<f32> loc("jit(f)")
  %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<4xf32> loc("jit(f)")
  %d = stablehlo.constant dense<2.0> : tensor<f32> loc("jit(f)")
  %1 = stablehlo.broadcast_in_dim %d, dims = [] : (tensor<f32>) -> tensor<4xf32> loc("jit(f)/broadcast_in_dim")
  %2 = stablehlo.clamp %0, %x, %1 {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc("jit(f)/clamp")
  return %2 : tensor<4xf32>
}

// The location says nothing.
// CHECK-LABEL: func.func @unknown
func.func @unknown(%x: tensor<f32>) -> tensor<f32> {
  // CHECK: stablehlo.sine %arg0 : tensor<f32>
  %0 = stablehlo.sine %x : tensor<f32> loc(unknown)
  %1 = stablehlo.abs %0 {mhlo.frontend_attributes = {k = "v"}} : tensor<f32> loc(unknown)
  return %1 : tensor<f32>
}

// A call of a function that JAX made for one primitive gets the entries that all of its body has. A call of a jit or of a
// public function does not.
// CHECK-LABEL: func.func @calls
func.func @calls(%x: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  // CHECK: call @primitive(%arg0) {mhlo.frontend_attributes = {k = "v"}}
  %0 = call @primitive(%x) : (tensor<f32>) -> tensor<f32> loc("jit(f)")
  // CHECK: call @inner(%arg0) : (tensor<f32>)
  %1 = call @inner(%x) : (tensor<f32>) -> tensor<f32> loc("jit(f)/jit(inner)")
  // CHECK: call @power(%1) : (tensor<f32>)
  %2 = call @power(%1) : (tensor<f32>) -> tensor<f32> loc("jit(f)")
  return %0, %2 : tensor<f32>, tensor<f32>
}
func.func private @primitive(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
  return %0 : tensor<f32>
} loc("threefry2x32")
func.func private @inner(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
  return %0 : tensor<f32>
} loc("jit:"("jit(f)/jit"))

// A loop of which condition and body are tagged throughout; in the second one the count is not.
// CHECK-LABEL: func.func @loops
func.func @loops(%x: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  // CHECK: stablehlo.while
  // CHECK-SAME: {mhlo.frontend_attributes = {k = "v"}}
  %0 = stablehlo.while(%a = %x) : tensor<f32> cond {
    %2 = stablehlo.compare LT, %a, %a {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %c = stablehlo.constant dense<1.0> : tensor<f32>
    %2 = stablehlo.add %a, %c {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }
  // CHECK: stablehlo.while(%{{.*}}) : tensor<f32>{{$}}
  %1 = stablehlo.while(%a = %0) : tensor<f32> cond {
    %2 = stablehlo.compare LT, %a, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %2 = stablehlo.sine %a {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }
  return %0, %1 : tensor<f32>, tensor<f32>
}

// An inner loop gets its entries before the loop around it.
// CHECK-LABEL: func.func @nested
func.func @nested(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: stablehlo.while(%{{.*}}) : tensor<f32> attributes {mhlo.frontend_attributes = {k = "v"}}
  %0 = stablehlo.while(%a = %x) : tensor<f32> cond {
    %1 = stablehlo.compare LT, %a, %a {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.while(%b = %a) : tensor<f32> cond {
      %2 = stablehlo.compare LT, %b, %b {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %2 = stablehlo.sine %b {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }
    stablehlo.return %1 : tensor<f32>
  }
  return %0 : tensor<f32>
}

// The barrier that jax.checkpoint puts before what is computed again.
// CHECK-LABEL: func.func @barrier
func.func @barrier(%x: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  // CHECK: stablehlo.optimization_barrier {mhlo.frontend_attributes = {k = "v"}} %arg0
  %0 = stablehlo.optimization_barrier %x : tensor<f32> loc("jit(f)/transpose(jvp())/remat2")
  %1 = stablehlo.sine %0 {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
  // The user's own is an equation.
  // CHECK: stablehlo.optimization_barrier %arg0
  %2 = stablehlo.optimization_barrier %x : tensor<f32> loc("jit(f)/optimization_barrier")
  %3 = stablehlo.sine %2 {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
  return %1, %3 : tensor<f32>, tensor<f32>
}

// Only what rules attached, with the record of it. Constants follow their users either way.
// ATTACHED-LABEL: func.func @attached
func.func @attached(%x: tensor<4xf32>, %y: tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // ATTACHED: stablehlo.constant {hlotag.attached = {k = "v"}, hlotag.derived = {}, mhlo.frontend_attributes = {k = "v"}}
  %c = stablehlo.constant dense<3.0> : tensor<f32> loc("jit(f)")
  // ATTACHED: stablehlo.broadcast_in_dim {{.*}} {hlotag.attached = {k = "v"}, hlotag.derived = {}, mhlo.frontend_attributes = {k = "v"}}
  %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<4xf32> loc("jit(f)/mul")
  // ATTACHED: stablehlo.multiply {{.*}}b = "mark"
  %1 = stablehlo.multiply %x, %0 {hlotag.attached = {k = "v"}, hlotag.derived = {}, mhlo.frontend_attributes = {b = "mark", k = "v"}} : tensor<4xf32> loc("jit(f)/mul")
  // ATTACHED: stablehlo.broadcast_in_dim %arg1, dims = [] :
  %2 = stablehlo.broadcast_in_dim %y, dims = [] : (tensor<f32>) -> tensor<4xf32> loc("jit(f)/add")
  %3 = stablehlo.add %x, %2 {mhlo.frontend_attributes = {b = "mark"}} : tensor<4xf32> loc("jit(f)/add")
  return %1, %3 : tensor<4xf32>, tensor<4xf32>
}

// The computation of a custom call is a part of it, not its lowering: what is tagged in there says nothing about the call.
// CHECK-LABEL: func.func @custom
func.func @custom(%x: tensor<f32>) -> tensor<f32> {
  // CHECK: custom_call @target(%arg0) {{.*}}called_computations = [@gt]}
  %0 = "stablehlo.custom_call"(%x) {call_target_name = "target", called_computations = [@gt]} : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @gt(%x: tensor<f32>, %y: tensor<f32>) -> tensor<i1> {
  %0 = stablehlo.compare GT, %x, %y {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}

// A helper is in the block of its operation: the loop that the tagged product is in gets no tag, nor what it captures.
// CHECK-LABEL: func.func @blocks
func.func @blocks(%x: tensor<f32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %0 = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<f32>) -> tensor<4xf32> loc("jit(f)/pow")
  %1 = stablehlo.while(%a = %y) : tensor<4xf32> cond {
    // CHECK: stablehlo.compare NE, %arg0, %arg0 :
    %2 = stablehlo.compare NE, %x, %x : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    // CHECK: stablehlo.multiply %iterArg, %0 {mhlo.frontend_attributes = {k = "v"}}
    %2 = stablehlo.multiply %a, %0 {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc("jit(f)/pow")
    stablehlo.return %2 : tensor<4xf32>
  }
  return %1 : tensor<4xf32>
}

// What a region of a tagged operation captures is a helper like its operands.
// CHECK-LABEL: func.func @captures
func.func @captures(%i: tensor<i32>, %x: tensor<f32>) -> tensor<4xf32> {
  // CHECK-NEXT: stablehlo.broadcast_in_dim {{.*}} {mhlo.frontend_attributes = {k = "v"}}
  %0 = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<f32>) -> tensor<4xf32> loc("jit(f)/switch")
  // CHECK-NEXT: stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %1 = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<f32>) -> tensor<4xf32> loc("jit(f)/other")
  %2 = "stablehlo.case"(%i) ({
    %3 = stablehlo.add %0, %1 : tensor<4xf32> loc("jit(f)/add")
    stablehlo.return %3 : tensor<4xf32>
  }) {mhlo.frontend_attributes = {k = "v"}} : (tensor<i32>) -> tensor<4xf32> loc("jit(f)/switch")
  return %2 : tensor<4xf32>
}

// A constant that only regions of tagged operations capture gets what `hlotag-propagate-regions` gives its users.
// CHECK-LABEL: func.func @captured_constants
func.func @captured_constants(%x: tensor<f32>, %i: tensor<i32>) -> tensor<f32> {
  // CHECK-NEXT: stablehlo.constant {mhlo.frontend_attributes = {k = "v"}} dense<1.0
  %0 = stablehlo.constant dense<1.0> : tensor<f32>
  // CHECK-NEXT: stablehlo.constant dense<2.0
  %1 = stablehlo.constant dense<2.0> : tensor<f32>
  // CHECK-NEXT: stablehlo.constant {mhlo.frontend_attributes = {j = "w"}} dense<3.0
  %2 = stablehlo.constant dense<3.0> : tensor<f32>
  %3 = "stablehlo.case"(%i) ({
    %4 = "stablehlo.case"(%i) ({
      %5 = stablehlo.add %x, %0 : tensor<f32>
      %6 = stablehlo.add %5, %1 : tensor<f32>
      %7 = stablehlo.add %6, %2 {mhlo.frontend_attributes = {j = "w", k = ["hlotag.unset"]}} : tensor<f32>
      stablehlo.return %7 : tensor<f32>
    }) : (tensor<i32>) -> tensor<f32>
    stablehlo.return %4 : tensor<f32>
  }) {mhlo.frontend_attributes = {k = "v"}} : (tensor<i32>) -> tensor<f32>
  %8 = stablehlo.add %3, %1 : tensor<f32>
  return %8 : tensor<f32>
}
