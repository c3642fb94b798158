// SPDX-License-Identifier: Apache-2.0
// Residuals are no candidates, and an expression that may be dead code has none.
// RUN: hlotag-opt %s --hlotag-propagate-autodiff --split-input-file | FileCheck %s

// The cosine is the residual of the sine: only the derivative uses it.
// CHECK-LABEL: func.func @residual
func.func @residual(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc(#sin)
  %1 = stablehlo.cosine %x : tensor<4xf32> loc(#cos)
  // CHECK: stablehlo.multiply {{.*}}mhlo.frontend_attributes = {k = "v"}
  %2 = stablehlo.multiply %g, %1 : tensor<4xf32> loc(#tmul)
  return %0, %2 : tensor<4xf32>, tensor<4xf32>
}

#frame = loc("f"("model.py":3:11 to :16))
#sin = loc("jit(f)/jvp()/sin"(#frame))
#cos = loc("jit(f)/jvp()/cos"(#frame))
#logistic = loc("jit(f)/jvp()/logistic"(#frame))
#tmul = loc("jit(f)/transpose(jvp())/mul"(#frame))

// -----

// The program uses both: the product may stem from either.
// CHECK-LABEL: func.func @both
func.func @both(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc(#sin)
  %1 = stablehlo.cosine %x : tensor<4xf32> loc(#cos)
  // CHECK: stablehlo.multiply %{{[^,]*}}, %{{[0-9]+}} : tensor
  %2 = stablehlo.multiply %g, %1 : tensor<4xf32> loc(#tmul)
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

#frame = loc("f"("model.py":3:11 to :16))
#sin = loc("jit(f)/jvp()/sin"(#frame))
#cos = loc("jit(f)/jvp()/cos"(#frame))
#logistic = loc("jit(f)/jvp()/logistic"(#frame))
#tmul = loc("jit(f)/transpose(jvp())/mul"(#frame))

// -----

// The gradient of `x * sigmoid(x)`: the product is dead code, and the line's products are not the logistic's alone.
// CHECK-LABEL: func.func @dead
func.func @dead(%x: tensor<4xf32>, %g: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.logistic %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc(#logistic)
  // CHECK: stablehlo.multiply %{{[^,]*}}, %{{[0-9]+}} : tensor
  %1 = stablehlo.multiply %g, %0 : tensor<4xf32> loc(#tmul)
  return %1 : tensor<4xf32>
}

#frame = loc("f"("model.py":3:11 to :16))
#sin = loc("jit(f)/jvp()/sin"(#frame))
#cos = loc("jit(f)/jvp()/cos"(#frame))
#logistic = loc("jit(f)/jvp()/logistic"(#frame))
#tmul = loc("jit(f)/transpose(jvp())/mul"(#frame))

// -----

// A loop stacks the residual: what moves slices is at the loop's line.
// CHECK-LABEL: func.func @stacked
func.func @stacked(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %stack = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<4xf32>) -> tensor<2x4xf32> loc(#stacks)
  %0:3 = stablehlo.while(%i = %zero, %y = %x, %s = %stack) : tensor<i32>, tensor<4xf32>, tensor<2x4xf32>
    cond {
      %p = stablehlo.compare LT, %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1> loc(#loop)
      stablehlo.return %p : tensor<i1>
    } do {
      %1 = stablehlo.sine %y {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc(#sin)
      %2 = stablehlo.cosine %y : tensor<4xf32> loc(#cos)
      %3 = stablehlo.reshape %2 : (tensor<4xf32>) -> tensor<1x4xf32> loc(#stacks)
      %4 = stablehlo.dynamic_update_slice %s, %3, %i, %zero : (tensor<2x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x4xf32> loc(#stacks)
      stablehlo.return %i, %1, %4 : tensor<i32>, tensor<4xf32>, tensor<2x4xf32>
    } loc(#loop)
  %5 = stablehlo.dynamic_slice %0#2, %zero, %zero, sizes = [1, 4] : (tensor<2x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32> loc(#stacks)
  %6 = stablehlo.reshape %5 : (tensor<1x4xf32>) -> tensor<4xf32> loc(#stacks)
  // CHECK: stablehlo.multiply {{.*}}mhlo.frontend_attributes = {k = "v"}
  %7 = stablehlo.multiply %g, %6 : tensor<4xf32> loc(#tmul)
  return %0#1, %7 : tensor<4xf32>, tensor<4xf32>
}

#frame = loc("f"("model.py":3:11 to :16))
#line = loc("f"("model.py":2:1 to :16))
#loop = loc("jit(f)/jvp()/while"(#line))
#stacks = loc("jit(f)/jvp()/while/body/dynamic_update_slice"(#line))
#sin = loc("jit(f)/jvp()/while/body/sin"(#frame))
#cos = loc("jit(f)/jvp()/while/body/cos"(#frame))
#tmul = loc("jit(f)/transpose(jvp())/while/body/mul"(#frame))
