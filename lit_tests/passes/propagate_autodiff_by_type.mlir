// SPDX-License-Identifier: Apache-2.0
// Where the forward operations of an expression disagree, the types of cotangents may tell which one
// an operation derives from.
// RUN: hlotag-opt %s --hlotag-propagate-autodiff --split-input-file | FileCheck %s --implicit-check-not=frontend_attributes

// One step takes the cotangent of a result, and gives that of an operand.
// CHECK-LABEL: func.func @step(
// CHECK-SAME: %[[ARG0:.*]]: tensor<4x8xf32>, %[[ARG1:.*]]: tensor<4xf32>) -> (tensor<4xf32>, tensor<4x8xf32>) {
func.func @step(%x: tensor<4x8xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4x8xf32>) {
  // CHECK-NEXT: %[[CST:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32> loc(#sin)
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {k = "sin"}} : tensor<4x8xf32>
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {k = "sin"}} : tensor<4x8xf32> loc(#sin)
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.reduce(%[[V0]] init: %[[CST]]) applies stablehlo.add across dimensions = [1] {mhlo.frontend_attributes = {k = "sum"}} : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1] {mhlo.frontend_attributes = {k = "sum"}} : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32> loc(#sum)
  // CHECK-NEXT: %[[V2:.*]] = stablehlo.broadcast_in_dim %[[ARG1]], dims = [0] {mhlo.frontend_attributes = {k = "sum"}} : (tensor<4xf32>) -> tensor<4x8xf32>
  %2 = stablehlo.broadcast_in_dim %g, dims = [0] : (tensor<4xf32>) -> tensor<4x8xf32> loc(#back)
  // CHECK-NEXT: %[[V3:.*]] = stablehlo.multiply %[[V2]], %[[ARG0]] {mhlo.frontend_attributes = {k = "sin"}} : tensor<4x8xf32>
  %3 = stablehlo.multiply %2, %x : tensor<4x8xf32> loc(#back)
  // A sum of cotangents is of a value that any operation may have taken.
  // CHECK-NEXT: %[[V4:.*]] = stablehlo.add %[[V2]], %[[V3]] : tensor<4x8xf32>
  %4 = stablehlo.add %2, %3 : tensor<4x8xf32> loc(#back)
  // The derivative of a derivative has the types of either.
  // CHECK-NEXT: %[[V5:.*]] = stablehlo.negate %[[V4]] : tensor<4x8xf32>
  %5 = stablehlo.negate %4 : tensor<4x8xf32> loc(#jvp)
  // CHECK-NEXT: %[[V6:.*]] = stablehlo.cosine %[[V5]] : tensor<4x8xf32>
  %6 = stablehlo.cosine %5 : tensor<4x8xf32> loc(#twice)
  // CHECK-NEXT: return %[[V1]], %[[V6]] : tensor<4xf32>, tensor<4x8xf32>
  return %1, %6 : tensor<4xf32>, tensor<4x8xf32>
// CHECK-NEXT: }
}
#frame = loc("f"("model.py":3:11 to :16))
#sin = loc("jit(f)/jvp()/sin"(#frame))
#sum = loc("jit(f)/jvp()/reduce_sum"(#frame))
#back = loc("jit(f)/transpose(jvp())/mul"(#frame))
#jvp = loc("jit(f)/jvp(transpose(jvp()))/neg"(#frame))
#twice = loc("jit(f)/transpose(transpose(jvp()))/cos"(#frame))

// -----

// Of two steps, the first takes the one and the second gives the other.
// CHECK-LABEL: func.func @steps(
// CHECK-SAME: %[[ARG0:.*]]: tensor<4x8xf32>, %[[ARG1:.*]]: tensor<1x8xf32>, %[[ARG2:.*]]: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<1x8xf32>) {
func.func @steps(%x: tensor<4x8xf32>, %b: tensor<1x8xf32>, %g: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<1x8xf32>) {
  // CHECK-NEXT: %[[CST:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32> loc(#back)
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.broadcast_in_dim %[[ARG1]], dims = [0, 1] {mhlo.frontend_attributes = {k = "add"}} : (tensor<1x8xf32>) -> tensor<4x8xf32>
  %0 = stablehlo.broadcast_in_dim %b, dims = [0, 1] {mhlo.frontend_attributes = {k = "add"}} : (tensor<1x8xf32>) -> tensor<4x8xf32> loc(#add)
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {k = "sin"}} : tensor<4x8xf32>
  %1 = stablehlo.sine %x {mhlo.frontend_attributes = {k = "sin"}} : tensor<4x8xf32> loc(#sin)
  // CHECK-NEXT: %[[V2:.*]] = stablehlo.reduce(%[[ARG2]] init: %[[CST]]) applies stablehlo.add across dimensions = [0] {mhlo.frontend_attributes = {k = "add"}} : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
  %2 = stablehlo.reduce(%g init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32> loc(#back)
  // CHECK-NEXT: %[[V3:.*]] = stablehlo.reshape %[[V2]] {mhlo.frontend_attributes = {k = "add"}} : (tensor<8xf32>) -> tensor<1x8xf32>
  %3 = stablehlo.reshape %2 : (tensor<8xf32>) -> tensor<1x8xf32> loc(#back)
  // Either may have emitted it.
  // CHECK-NEXT: %[[V4:.*]] = stablehlo.negate %[[ARG2]] : tensor<4x8xf32>
  %4 = stablehlo.negate %g : tensor<4x8xf32> loc(#back)
  // CHECK-NEXT: %[[V5:.*]] = stablehlo.add %[[V0]], %[[V1]] : tensor<4x8xf32>
  %5 = stablehlo.add %0, %1 : tensor<4x8xf32> loc(#next)
  // CHECK-NEXT: return %[[V5]], %[[V3]] : tensor<4x8xf32>, tensor<1x8xf32>
  return %5, %3 : tensor<4x8xf32>, tensor<1x8xf32>
// CHECK-NEXT: }
}
#frame = loc("f"("model.py":3:11 to :16))
#add = loc("jit(f)/jvp()/add"(#frame))
#sin = loc("jit(f)/jvp()/sin"(#frame))
#back = loc("jit(f)/transpose(jvp())/mul"(#frame))
#next = loc("jit(f)/jvp()/add"("f"("model.py":4:11 to :16)))

// -----

// A maximum's derivative has many steps, of types that are not known.
// CHECK-LABEL: func.func @many(
// CHECK-SAME: %[[ARG0:.*]]: tensor<4x8xf32>, %[[ARG1:.*]]: tensor<f32>, %[[ARG2:.*]]: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
func.func @many(%x: tensor<4x8xf32>, %low: tensor<f32>, %g: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {k = "sin"}} : tensor<4x8xf32>
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {k = "sin"}} : tensor<4x8xf32> loc(#sin)
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.reduce(%[[V0]] init: %[[ARG1]]) applies stablehlo.maximum across dimensions = [1] {mhlo.frontend_attributes = {k = "max"}} : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = stablehlo.reduce(%0 init: %low) applies stablehlo.maximum across dimensions = [1] {mhlo.frontend_attributes = {k = "max"}} : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32> loc(#max)
  // CHECK-NEXT: %[[V2:.*]] = stablehlo.multiply %[[ARG2]], %[[ARG0]] : tensor<4x8xf32>
  %2 = stablehlo.multiply %g, %x : tensor<4x8xf32> loc(#back)
  // CHECK-NEXT: %[[V3:.*]] = stablehlo.sine %[[ARG0]] : tensor<4x8xf32>
  %3 = stablehlo.sine %x : tensor<4x8xf32> loc(#again)
  // CHECK-NEXT: return %[[V1]], %[[V2]], %[[V3]] : tensor<4xf32>, tensor<4x8xf32>, tensor<4x8xf32>
  return %1, %2, %3 : tensor<4xf32>, tensor<4x8xf32>, tensor<4x8xf32>
// CHECK-NEXT: }
}
#frame = loc("f"("model.py":3:11 to :16))
#sin = loc("jit(f)/jvp()/sin"(#frame))
#max = loc("jit(f)/jvp()/reduce_max"(#frame))
#back = loc("jit(f)/transpose(jvp())/mul"(#frame))
#again = loc("jit(f)/transpose(jvp())/checkpoint/rematted_computation/sin"(#frame))

// -----

// A copy has the types of its original.
// CHECK-LABEL: func.func @copy(
// CHECK-SAME: %[[ARG0:.*]]: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
func.func @copy(%x: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.convert %[[ARG0]] {mhlo.frontend_attributes = {k = "convert"}} : (tensor<4xi32>) -> tensor<4xf32>
  %0 = stablehlo.convert %x {mhlo.frontend_attributes = {k = "convert"}} : (tensor<4xi32>) -> tensor<4xf32> loc(#convert)
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.sine %[[V0]] {mhlo.frontend_attributes = {k = "sin"}} : tensor<4xf32>
  %1 = stablehlo.sine %0 {mhlo.frontend_attributes = {k = "sin"}} : tensor<4xf32> loc(#sin)
  // CHECK-NEXT: %[[V2:.*]] = stablehlo.convert %[[ARG0]] {mhlo.frontend_attributes = {k = "convert"}} : (tensor<4xi32>) -> tensor<4xf32>
  %2 = stablehlo.convert %x : (tensor<4xi32>) -> tensor<4xf32> loc(#again)
  // CHECK-NEXT: %[[V3:.*]] = stablehlo.sine %[[V2]] {mhlo.frontend_attributes = {k = "sin"}} : tensor<4xf32>
  %3 = stablehlo.sine %2 : tensor<4xf32> loc(#again)
  // CHECK-NEXT: return %[[V0]], %[[V1]], %[[V3]] : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  return %0, %1, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT: }
}
#frame = loc("f"("model.py":3:11 to :16))
#convert = loc("jit(f)/jvp()/convert_element_type"(#frame))
#sin = loc("jit(f)/jvp()/sin"(#frame))
#again = loc("jit(f)/transpose(jvp())/checkpoint/rematted_computation/sin"(#frame))

// -----

// So has a sum of two values at once, and the call of a kernel.
// CHECK-LABEL: func.func @two(
// CHECK-SAME: %[[ARG0:.*]]: tensor<4x8xf32>, %[[ARG1:.*]]: tensor<f32>, %[[ARG2:.*]]: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
func.func @two(%x: tensor<4x8xf32>, %zero: tensor<f32>, %g: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {k = "sin"}} : tensor<4x8xf32>
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {k = "sin"}} : tensor<4x8xf32> loc(#sin)
  // CHECK-NEXT: %[[V1:.*]]:2 = stablehlo.reduce(%[[V0]] init: %[[ARG1]]), (%[[ARG0]] init: %[[ARG1]]) across dimensions = [1] {mhlo.frontend_attributes = {k = "sum"}} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %1:2 = stablehlo.reduce(%0 init: %zero), (%x init: %zero) across dimensions = [1] {mhlo.frontend_attributes = {k = "sum"}} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
    // CHECK-NEXT: reducer(%[[ARG3:.*]]: tensor<f32>, %[[ARG5:.*]]: tensor<f32>) (%[[ARG4:.*]]: tensor<f32>, %[[ARG6:.*]]: tensor<f32>)  {
    reducer(%a: tensor<f32>, %c: tensor<f32>) (%b: tensor<f32>, %d: tensor<f32>) {
    // CHECK-NEXT: %[[V6:.*]] = stablehlo.add %[[ARG3]], %[[ARG5]] : tensor<f32>
    %2 = stablehlo.add %a, %c : tensor<f32>
    // CHECK-NEXT: %[[V7:.*]] = stablehlo.add %[[ARG4]], %[[ARG6]] : tensor<f32>
    %3 = stablehlo.add %b, %d : tensor<f32>
    // CHECK-NEXT: stablehlo.return %[[V6]], %[[V7]] : tensor<f32>, tensor<f32>
    stablehlo.return %2, %3 : tensor<f32>, tensor<f32>
  // CHECK-NEXT: }
  } loc(#sum)
  // CHECK-NEXT: %[[V2:.*]] = stablehlo.multiply %[[ARG2]], %[[ARG0]] : tensor<4x8xf32>
  %4 = stablehlo.multiply %g, %x : tensor<4x8xf32> loc(#back)
  // CHECK-NEXT: %[[V3:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {k = "sin"}} : tensor<4x8xf32>
  %5 = stablehlo.sine %x {mhlo.frontend_attributes = {k = "sin"}} : tensor<4x8xf32> loc(#sin2)
  // CHECK-NEXT: %[[V4:.*]] = stablehlo.custom_call @kernel(%[[V3]]) {mhlo.frontend_attributes = {k = "kernel"}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %6 = stablehlo.custom_call @kernel(%5) {mhlo.frontend_attributes = {k = "kernel"}} : (tensor<4x8xf32>) -> tensor<4x8xf32> loc(#kernel)
  // CHECK-NEXT: %[[V5:.*]] = stablehlo.multiply %[[ARG2]], %[[ARG0]] : tensor<4x8xf32>
  %7 = stablehlo.multiply %g, %x : tensor<4x8xf32> loc(#back2)
  // CHECK-NEXT: return %[[V1]]#0, %[[V4]], %[[V2]], %[[V5]] : tensor<4xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
  return %1#0, %6, %4, %7 : tensor<4xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
// CHECK-NEXT: }
}
#frame = loc("f"("model.py":3:11 to :16))
#frame2 = loc("f"("model.py":4:11 to :16))
#sin = loc("jit(f)/jvp()/sin"(#frame))
#sum = loc("jit(f)/jvp()/reduce_sum"(#frame))
#back = loc("jit(f)/transpose(jvp())/mul"(#frame))
#sin2 = loc("jit(f)/jvp()/sin"(#frame2))
#kernel = loc("jit(f)/jvp()/kernel"(#frame2))
#back2 = loc("jit(f)/transpose(jvp())/mul"(#frame2))

// -----

// A comparison has no derivative, so what takes its result is no step of one.
// CHECK-LABEL: func.func @comparison(
// CHECK-SAME: %[[ARG0:.*]]: tensor<4x8xf32>, %[[ARG1:.*]]: tensor<f32>, %[[ARG2:.*]]: tensor<4xf32>) -> (tensor<4xf32>, tensor<4x8xi1>, tensor<4x8xf32>) {
func.func @comparison(%x: tensor<4x8xf32>, %zero: tensor<f32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4x8xi1>, tensor<4x8xf32>) {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.compare GT, %[[ARG0]], %[[ARG0]] {mhlo.frontend_attributes = {k = "compare"}} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
  %0 = stablehlo.compare GT, %x, %x {mhlo.frontend_attributes = {k = "compare"}} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1> loc(#gt)
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.sine %[[ARG0]] {mhlo.frontend_attributes = {k = "sin"}} : tensor<4x8xf32>
  %1 = stablehlo.sine %x {mhlo.frontend_attributes = {k = "sin"}} : tensor<4x8xf32> loc(#sin)
  // CHECK-NEXT: %[[V2:.*]] = stablehlo.reduce(%[[V1]] init: %[[ARG1]]) applies stablehlo.add across dimensions = [1] {mhlo.frontend_attributes = {k = "sum"}} : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [1] {mhlo.frontend_attributes = {k = "sum"}} : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32> loc(#sum)
  // CHECK-NEXT: %[[V3:.*]] = stablehlo.broadcast_in_dim %[[ARG2]], dims = [0] {mhlo.frontend_attributes = {k = "sum"}} : (tensor<4xf32>) -> tensor<4x8xf32>
  %3 = stablehlo.broadcast_in_dim %g, dims = [0] : (tensor<4xf32>) -> tensor<4x8xf32> loc(#back)
  // CHECK-NEXT: %[[V4:.*]] = stablehlo.select %[[V0]], %[[V3]], %[[ARG0]] {mhlo.frontend_attributes = {k = "sin"}} : tensor<4x8xi1>, tensor<4x8xf32>
  %4 = stablehlo.select %0, %3, %x : tensor<4x8xi1>, tensor<4x8xf32> loc(#back)
  // CHECK-NEXT: return %[[V2]], %[[V0]], %[[V4]] : tensor<4xf32>, tensor<4x8xi1>, tensor<4x8xf32>
  return %2, %0, %4 : tensor<4xf32>, tensor<4x8xi1>, tensor<4x8xf32>
// CHECK-NEXT: }
}
#frame = loc("f"("model.py":3:11 to :16))
#gt = loc("jit(f)/jvp()/gt"(#frame))
#sin = loc("jit(f)/jvp()/sin"(#frame))
#sum = loc("jit(f)/jvp()/reduce_sum"(#frame))
#back = loc("jit(f)/transpose(jvp())/select_n"(#frame))

// -----

// A copy of a broadcast has the types of the derivative of a sum, and is none.
// CHECK-LABEL: func.func @copies(
// CHECK-SAME: %[[ARG0:.*]]: tensor<4x8xf32>, %[[ARG1:.*]]: tensor<f32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
func.func @copies(%x: tensor<4x8xf32>, %zero: tensor<f32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.reduce(%[[ARG0]] init: %[[ARG1]]) applies stablehlo.add across dimensions = [1] {mhlo.frontend_attributes = {k = "sum"}} : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] {mhlo.frontend_attributes = {k = "sum"}} : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32> loc(#sum)
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.broadcast_in_dim %[[V0]], dims = [0] {mhlo.frontend_attributes = {k = "broadcast"}} : (tensor<4xf32>) -> tensor<4x8xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0] {mhlo.frontend_attributes = {k = "broadcast"}} : (tensor<4xf32>) -> tensor<4x8xf32> loc(#broadcast)
  // CHECK-NEXT: %[[V2:.*]] = stablehlo.reduce(%[[ARG0]] init: %[[ARG1]]) applies stablehlo.add across dimensions = [1] {mhlo.frontend_attributes = {k = "sum"}} : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32> loc(#again)
  // CHECK-NEXT: %[[V3:.*]] = stablehlo.broadcast_in_dim %[[V2]], dims = [0] {mhlo.frontend_attributes = {k = "broadcast"}} : (tensor<4xf32>) -> tensor<4x8xf32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<4xf32>) -> tensor<4x8xf32> loc(#again)
  // CHECK-NEXT: return %[[V1]], %[[V3]] : tensor<4x8xf32>, tensor<4x8xf32>
  return %1, %3 : tensor<4x8xf32>, tensor<4x8xf32>
// CHECK-NEXT: }
}
#frame = loc("f"("model.py":3:11 to :16))
#sum = loc("jit(f)/jvp()/reduce_sum"(#frame))
#broadcast = loc("jit(f)/jvp()/broadcast_in_dim"(#frame))
#again = loc("jit(f)/transpose(jvp())/checkpoint/rematted_computation/reduce_sum"(#frame))
