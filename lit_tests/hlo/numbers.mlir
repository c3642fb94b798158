// SPDX-License-Identifier: Apache-2.0
// RUN: %python %S/Inputs/number.py %s | FileCheck %s
// RUN: %python %S/Inputs/number.py %s --every | FileCheck %s --check-prefix=EVERY

// A broadcast has the number of its only user if both have one place; with --every, its own.
// CHECK-LABEL: func.func @helpers
// EVERY-LABEL: func.func @helpers
func.func @helpers(%x: tensor<4xf32>) -> tensor<4xf32> {
  // XLA drops the names of constants.
  // CHECK-NEXT: stablehlo.constant {{.*}} loc("c"("f"("m.py":1:1)))
  // EVERY-NEXT: stablehlo.constant {{.*}} loc("c"("f"("m.py":1:1)))
  %c = stablehlo.constant dense<2.0> : tensor<f32> loc("c"("f"("m.py":1:1)))
  // CHECK-NEXT: stablehlo.broadcast_in_dim {{.*}} loc("\01t:3\01/mul"("f"("m.py":2:1)))
  // EVERY-NEXT: stablehlo.broadcast_in_dim {{.*}} loc("\01t:2\01/mul"("f"("m.py":2:1)))
  %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<4xf32> loc("mul"("f"("m.py":2:1)))
  // CHECK-NEXT: stablehlo.multiply {{.*}} loc("\01t:3\01/mul"("f"("m.py":2:1)))
  // EVERY-NEXT: stablehlo.multiply {{.*}} loc("\01t:3\01/mul"("f"("m.py":2:1)))
  %1 = stablehlo.multiply %x, %0 : tensor<4xf32> loc("mul"("f"("m.py":2:1)))
  // Another place.
  // CHECK-NEXT: stablehlo.broadcast_in_dim {{.*}} loc("\01t:4\01/b"("f"("m.py":3:1)))
  %2 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<4xf32> loc("b"("f"("m.py":3:1)))
  // CHECK-NEXT: stablehlo.add {{.*}} loc("\01t:5\01/add"("f"("m.py":3:1)))
  %3 = stablehlo.add %1, %2 : tensor<4xf32> loc("add"("f"("m.py":3:1)))
  // Two users.
  // CHECK-NEXT: stablehlo.broadcast_in_dim {{.*}} loc("\01t:6\01/two"("f"("m.py":4:1)))
  %4 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<4xf32> loc("two"("f"("m.py":4:1)))
  // CHECK-NEXT: stablehlo.add {{.*}} loc("\01t:7\01/two"("f"("m.py":4:1)))
  %5 = stablehlo.add %3, %4 : tensor<4xf32> loc("two"("f"("m.py":4:1)))
  // CHECK-NEXT: stablehlo.add {{.*}} loc("\01t:8\01/two"("f"("m.py":4:1)))
  %6 = stablehlo.add %5, %4 : tensor<4xf32> loc("two"("f"("m.py":4:1)))
  // No other operation than a broadcast.
  // CHECK-NEXT: stablehlo.sine {{.*}} loc("\01t:9\01/mul"("f"("m.py":5:1)))
  %7 = stablehlo.sine %6 : tensor<4xf32> loc("mul"("f"("m.py":5:1)))
  // CHECK-NEXT: stablehlo.multiply {{.*}} loc("\01t:10\01/mul"("f"("m.py":5:1)))
  %8 = stablehlo.multiply %7, %7 : tensor<4xf32> loc("mul"("f"("m.py":5:1)))
  // A user that is in a file, but has no name.
  // CHECK-NEXT: stablehlo.broadcast_in_dim {{.*}} loc("\01t:11\01/x"("f"("m.py":6:1)))
  %9 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<4xf32> loc("x"("f"("m.py":6:1)))
  // CHECK-NEXT: stablehlo.negate {{.*}} loc("m.py":6:1)
  %10 = stablehlo.negate %9 : tensor<4xf32> loc("m.py":6:1)
  return %10 : tensor<4xf32>
}

// CHECK-LABEL: func.func @names
func.func @names(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: stablehlo.sine {{.*}} loc("\01t:15\01/jit(f)/sin"("f"("m.py":1:1)))
  %0 = stablehlo.sine %x : tensor<f32> loc("jit(f)/sin"("f"("m.py":1:1)))
  // The type of an operation is around its name.
  // CHECK-NEXT: stablehlo.tanh {{.*}} loc("tanh:"("\01t:16\01/jit(f)/tanh"("f"("m.py":1:1))))
  %1 = stablehlo.tanh %0 : tensor<f32> loc("tanh:"("jit(f)/tanh"("f"("m.py":1:1))))
  // The name directly around a file may also be that of a frame, so it stays.
  // CHECK-NEXT: stablehlo.cosine {{.*}} loc("\01t:17\01/f"("f"("m.py":1:1)))
  %2 = stablehlo.cosine %1 : tensor<f32> loc("f"("m.py":1:1))
  // CHECK-NEXT: stablehlo.abs {{.*}} loc("")
  %3 = stablehlo.abs %2 : tensor<f32> loc("")
  // CHECK-NEXT: stablehlo.floor {{.*}} loc(unknown)
  %4 = stablehlo.floor %3 : tensor<f32> loc(unknown)
  return %4 : tensor<f32>
}
