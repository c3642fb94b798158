// SPDX-License-Identifier: Apache-2.0
// What equations emitted that are dead code, and so are not in the module.
// RUN: hlotag-opt %s --hlotag-propagate-autodiff --split-input-file | FileCheck %s

// The gradient of `log(sum(exp(x)))`, all in one line: the logarithm is dead. Only a division by its operand fits what is
// left of it, so the sum after that is the derivative of the broadcast, and of nothing that divides.
// CHECK-LABEL: func.func @dead_logarithm
func.func @dead_logarithm(%x: tensor<4xf32>, %g: tensor<4x1xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.exponential %x : tensor<4xf32> loc(#exp)
  %1 = stablehlo.broadcast_in_dim %0, dims = [0] {mhlo.frontend_attributes = {k = "v"}} : (tensor<4xf32>) -> tensor<4x1xf32> loc(#broadcast)
  // CHECK: stablehlo.divide %arg1, %{{[0-9]+}} : tensor
  %2 = stablehlo.divide %g, %1 : tensor<4x1xf32> loc(#tdiv)
  // CHECK-NEXT: stablehlo.reduce({{.*}}mhlo.frontend_attributes = {k = "v"}
  %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x1xf32>, tensor<f32>) -> tensor<4xf32> loc(#tsum)
  %4 = stablehlo.multiply %3, %0 : tensor<4xf32> loc(#tmul)
  return %4 : tensor<4xf32>
}

#frame = loc("f"("model.py":3:11 to :16))
#exp = loc("jit(f)/jvp()/exp"(#frame))
#broadcast = loc("jit(f)/jvp()/broadcast_in_dim"(#frame))
#tdiv = loc("jit(f)/transpose(jvp())/div"(#frame))
#tsum = loc("jit(f)/transpose(jvp())/reduce_sum"(#frame))
#tmul = loc("jit(f)/transpose(jvp())/mul"(#frame))

// -----

// With the negative product beside it, the division may be that of a dead quotient, and the sum too.
// CHECK-LABEL: func.func @dead_quotient
func.func @dead_quotient(%x: tensor<4xf32>, %g: tensor<4x1xf32>) -> (tensor<4xf32>, tensor<4x1xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.exponential %x : tensor<4xf32> loc(#exp)
  %1 = stablehlo.broadcast_in_dim %0, dims = [0] {mhlo.frontend_attributes = {k = "v"}} : (tensor<4xf32>) -> tensor<4x1xf32> loc(#broadcast)
  %2 = stablehlo.divide %g, %1 : tensor<4x1xf32> loc(#tdiv)
  // CHECK: stablehlo.reduce({{.*}}dimensions = [1] : (
  %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x1xf32>, tensor<f32>) -> tensor<4xf32> loc(#tsum)
  %4 = stablehlo.multiply %3, %0 : tensor<4xf32> loc(#tmul)
  %5 = stablehlo.multiply %g, %1 : tensor<4x1xf32> loc(#tmul)
  %6 = stablehlo.negate %5 : tensor<4x1xf32> loc(#tneg)
  return %4, %6 : tensor<4xf32>, tensor<4x1xf32>
}

#frame = loc("f"("model.py":3:11 to :16))
#exp = loc("jit(f)/jvp()/exp"(#frame))
#broadcast = loc("jit(f)/jvp()/broadcast_in_dim"(#frame))
#tdiv = loc("jit(f)/transpose(jvp())/div"(#frame))
#tsum = loc("jit(f)/transpose(jvp())/reduce_sum"(#frame))
#tmul = loc("jit(f)/transpose(jvp())/mul"(#frame))
#tneg = loc("jit(f)/transpose(jvp())/neg"(#frame))

// -----

// The table has no row for a primitive of the place: what it emits may look like another one's derivative.
// CHECK-LABEL: func.func @no_row
func.func @no_row(%x: tensor<4x4xf32>, %g: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = stablehlo.custom_call @factors(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32> loc(#factors)
  %1 = stablehlo.transpose %0, dims = [1, 0] {mhlo.frontend_attributes = {k = "v"}} : (tensor<4x4xf32>) -> tensor<4x4xf32> loc(#transpose)
  %2 = stablehlo.sine %1 : tensor<4x4xf32> loc(#sine)
  %3 = stablehlo.cosine %1 : tensor<4x4xf32> loc(#cosine)
  %4 = stablehlo.multiply %g, %3 : tensor<4x4xf32> loc(#tsine)
  // CHECK: stablehlo.transpose %{{[0-9]+}}, dims = [1, 0] : (
  %5 = stablehlo.transpose %4, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32> loc(#ttranspose)
  return %2, %5 : tensor<4x4xf32>, tensor<4x4xf32>
}

#frame = loc("f"("model.py":3:11 to :16))
#other = loc("f"("model.py":4:11 to :16))
#factors = loc("jit(f)/jvp()/factors"(#frame))
#transpose = loc("jit(f)/jvp()/transpose"(#frame))
#ttranspose = loc("jit(f)/transpose(jvp())/transpose"(#frame))
#sine = loc("jit(f)/jvp()/sin"(#other))
#cosine = loc("jit(f)/jvp()/cos"(#other))
#tsine = loc("jit(f)/transpose(jvp())/mul"(#other))

// -----

// The same without: the transpose takes the cotangent of the sine's operand.
// CHECK-LABEL: func.func @with_rows
func.func @with_rows(%x: tensor<4x4xf32>, %g: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %1 = stablehlo.transpose %x, dims = [1, 0] {mhlo.frontend_attributes = {k = "v"}} : (tensor<4x4xf32>) -> tensor<4x4xf32> loc(#transpose)
  %2 = stablehlo.sine %1 : tensor<4x4xf32> loc(#sine)
  %3 = stablehlo.cosine %1 : tensor<4x4xf32> loc(#cosine)
  %4 = stablehlo.multiply %g, %3 : tensor<4x4xf32> loc(#tsine)
  // CHECK: stablehlo.transpose %{{[0-9]+}}, dims = [1, 0] {mhlo.frontend_attributes = {k = "v"}}
  %5 = stablehlo.transpose %4, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32> loc(#ttranspose)
  return %2, %5 : tensor<4x4xf32>, tensor<4x4xf32>
}

#frame = loc("f"("model.py":3:11 to :16))
#other = loc("f"("model.py":4:11 to :16))
#transpose = loc("jit(f)/jvp()/transpose"(#frame))
#ttranspose = loc("jit(f)/transpose(jvp())/transpose"(#frame))
#sine = loc("jit(f)/jvp()/sin"(#other))
#cosine = loc("jit(f)/jvp()/cos"(#other))
#tsine = loc("jit(f)/transpose(jvp())/mul"(#other))
