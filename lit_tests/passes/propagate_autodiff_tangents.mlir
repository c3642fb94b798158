// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --hlotag-propagate-autodiff | FileCheck %s
// RUN: hlotag-opt %s --hlotag-propagate-autodiff --hlotag-propagate-autodiff | FileCheck %s

// Forward mode over the gradient of `sum(tanh(x @ w))`: each line has equations twice, the primal
// and the tangent, with one name. Both have derivatives of the same equation.

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %tx: tensor<4x8xf32>, %tw: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %one = stablehlo.constant dense<1.0> : tensor<4x8xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {mhlo.frontend_attributes = {k = "v"}} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc(#dot)
  %1 = stablehlo.dot_general %tx, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc(#dot)
  %2 = stablehlo.dot_general %x, %tw, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc(#dot)
  %3 = stablehlo.add %1, %2 : tensor<4x8xf32> loc(#dotsum)
  %4 = stablehlo.tanh %0 : tensor<4x8xf32> loc(#tanh)
  %5 = stablehlo.multiply %4, %4 : tensor<4x8xf32> loc(#ttanh)
  // CHECK: stablehlo.add %{{[0-9]+}}, %{{[0-9]+}} : tensor
  // CHECK-NEXT: stablehlo.tanh %{{[0-9]+}} : tensor
  // CHECK-NEXT: stablehlo.multiply %{{[0-9]+}}, %{{[0-9]+}} : tensor
  // CHECK-NEXT: stablehlo.multiply %{{[0-9]+}}, %{{[0-9]+}} : tensor
  %6 = stablehlo.multiply %5, %3 : tensor<4x8xf32> loc(#ttanh)
  // The product of the gradient, and the two terms of its tangent.
  // CHECK-NEXT: stablehlo.dot_general %{{.*}} {mhlo.frontend_attributes = {k = "v"}} {{.*}}
  %7 = stablehlo.dot_general %5, %x, contracting_dims = [0] x [0] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32> loc(#tdot)
  // CHECK-NEXT: stablehlo.dot_general %{{.*}} {mhlo.frontend_attributes = {k = "v"}} {{.*}}
  %8 = stablehlo.dot_general %6, %x, contracting_dims = [0] x [0] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32> loc(#tdot)
  // CHECK-NEXT: stablehlo.dot_general %{{.*}} {mhlo.frontend_attributes = {k = "v"}} {{.*}}
  %9 = stablehlo.dot_general %5, %tx, contracting_dims = [0] x [0] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32> loc(#tdot)
  // CHECK-NEXT: stablehlo.add %{{.*}} {mhlo.frontend_attributes = {k = "v"}} {{.*}}
  %10 = stablehlo.add %8, %9 : tensor<8x8xf32> loc(#tdotsum)
  return %7, %10 : tensor<8x8xf32>, tensor<8x8xf32>
}

#frame1 = loc("f"("model.py":3:11 to :16))
#frame2 = loc("f"("model.py":3:2 to :17))
#dot = loc("jit(f)/jvp(jvp(layer))/dot_general"(#frame1))
#dotsum = loc("jit(f)/jvp(jvp(layer))/add_any"(#frame1))
#tanh = loc("jit(f)/jvp(jvp(layer))/tanh"(#frame2))
#ttanh = loc("jit(f)/jvp(transpose(jvp(layer)))/mul"(#frame2))
#tdot = loc("jit(f)/jvp(transpose(jvp(layer)))/dot_general"(#frame1))
#tdotsum = loc("jit(f)/jvp(transpose(jvp(layer)))/add_any"(#frame1))
