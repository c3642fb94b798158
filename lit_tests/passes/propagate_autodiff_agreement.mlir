// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --hlotag-propagate-autodiff --split-input-file | FileCheck %s
// RUN: hlotag-opt %s --hlotag-propagate-autodiff --hlotag-propagate-autodiff --split-input-file | FileCheck %s

// Which of two equal equations of one line the product stems from cannot be told. Where both hand on
// the same entries, it does not matter.

// CHECK-LABEL: func.func @same
// ORIGINS-LABEL: func.func @same
func.func @same(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.exponential %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc(#mul)
  %1 = stablehlo.exponential %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc(#mul)
  // CHECK: stablehlo.multiply %arg1, %0 {mhlo.frontend_attributes = {k = "v"}} {{.*}}
  // ORIGINS: confidence = "1.00"
  %2 = stablehlo.multiply %g, %0 : tensor<4xf32> loc(#tmul)
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

#frame = loc("f"("model.py":3:11 to :16))
#frame2 = loc("f"("model.py":4:11 to :16))
#mul = loc("jit(f)/jvp(layer)/exp"(#frame))
#tmul = loc("jit(f)/transpose(jvp(layer))/mul"(#frame))
#tsum = loc("jit(f)/transpose(jvp(layer))/add_any"(#frame))
#slice = loc("jit(f)/jvp(layer)/slice"(#frame2))

// -----

// CHECK-LABEL: func.func @different
func.func @different(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.exponential %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc(#mul)
  %1 = stablehlo.exponential %x {mhlo.frontend_attributes = {k = "w"}} : tensor<4xf32> loc(#mul)
  // CHECK: stablehlo.multiply %{{[^,]*}}, %0 : tensor<4xf32>
  %2 = stablehlo.multiply %g, %0 : tensor<4xf32> loc(#tmul)
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

#frame = loc("f"("model.py":3:11 to :16))
#frame2 = loc("f"("model.py":4:11 to :16))
#mul = loc("jit(f)/jvp(layer)/exp"(#frame))
#tmul = loc("jit(f)/transpose(jvp(layer))/mul"(#frame))
#tsum = loc("jit(f)/transpose(jvp(layer))/add_any"(#frame))
#slice = loc("jit(f)/jvp(layer)/slice"(#frame2))

// -----

// One of them has no entries: nothing is certain.
// CHECK-LABEL: func.func @one
func.func @one(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.exponential %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc(#mul)
  %1 = stablehlo.exponential %x : tensor<4xf32> loc(#mul)
  // CHECK: stablehlo.multiply %{{[^,]*}}, %0 : tensor<4xf32>
  %2 = stablehlo.multiply %g, %0 : tensor<4xf32> loc(#tmul)
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

#frame = loc("f"("model.py":3:11 to :16))
#frame2 = loc("f"("model.py":4:11 to :16))
#mul = loc("jit(f)/jvp(layer)/exp"(#frame))
#tmul = loc("jit(f)/transpose(jvp(layer))/mul"(#frame))
#tsum = loc("jit(f)/transpose(jvp(layer))/add_any"(#frame))
#slice = loc("jit(f)/jvp(layer)/slice"(#frame2))

// -----

// What is of another type is no exception.
// CHECK-LABEL: func.func @types
func.func @types(%x: tensor<4xf32>, %g: tensor<2xf32>) -> (tensor<4xf32>, tensor<2xf32>, tensor<2xf32>) {
  %0 = stablehlo.exponential %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc(#mul)
  %1 = stablehlo.slice %0 [0:2] : (tensor<4xf32>) -> tensor<2xf32> loc(#slice)
  %2 = stablehlo.exponential %1 {mhlo.frontend_attributes = {k = "w"}} : tensor<2xf32> loc(#mul)
  // CHECK: stablehlo.multiply %arg1, %{{[0-9]+}} : tensor<2xf32>
  %3 = stablehlo.multiply %g, %2 : tensor<2xf32> loc(#tmul)
  return %0, %2, %3 : tensor<4xf32>, tensor<2xf32>, tensor<2xf32>
}

#frame = loc("f"("model.py":3:11 to :16))
#frame2 = loc("f"("model.py":4:11 to :16))
#mul = loc("jit(f)/jvp(layer)/exp"(#frame))
#tmul = loc("jit(f)/transpose(jvp(layer))/mul"(#frame))
#tsum = loc("jit(f)/transpose(jvp(layer))/add_any"(#frame))
#slice = loc("jit(f)/jvp(layer)/slice"(#frame2))

// -----

// A sum of cotangents may stem from each of the line's equations.
// CHECK-LABEL: func.func @sum
func.func @sum(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.exponential %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc(#mul)
  %1 = stablehlo.exponential %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc(#mul)
  %2 = stablehlo.multiply %g, %0 : tensor<4xf32> loc(#tmul)
  // CHECK: stablehlo.add {{.*}} {mhlo.frontend_attributes = {k = "v"}}
  %3 = stablehlo.add %2, %g : tensor<4xf32> loc(#tsum)
  return %0, %1, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

#frame = loc("f"("model.py":3:11 to :16))
#frame2 = loc("f"("model.py":4:11 to :16))
#mul = loc("jit(f)/jvp(layer)/exp"(#frame))
#tmul = loc("jit(f)/transpose(jvp(layer))/mul"(#frame))
#tsum = loc("jit(f)/transpose(jvp(layer))/add_any"(#frame))
#slice = loc("jit(f)/jvp(layer)/slice"(#frame2))

// -----

// A product derives from products of its line; what moves its operands derives from either.
// CHECK-LABEL: func.func @product
func.func @product(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %g: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {mhlo.frontend_attributes = {k = "v"}} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc(#dot)
  %1 = stablehlo.tanh %0 {mhlo.frontend_attributes = {k = "w"}} : tensor<4x8xf32> loc(#tanh)
  // CHECK: stablehlo.dot_general %arg2, %arg0, {{.*}} {mhlo.frontend_attributes = {k = "v"}}
  %2 = stablehlo.dot_general %g, %x, contracting_dims = [0] x [0] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32> loc(#tdot)
  // CHECK-NEXT: stablehlo.transpose %{{[0-9]+}}, dims = [1, 0] : (
  %3 = stablehlo.transpose %2, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32> loc(#ttranspose)
  return %0, %3, %1 : tensor<4x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>
}

#frame = loc("f"("model.py":3:11 to :16))
#dot = loc("jit(f)/jvp(layer)/dot_general"(#frame))
#tanh = loc("jit(f)/jvp(layer)/tanh"(#frame))
#tdot = loc("jit(f)/transpose(jvp(layer))/dot_general"(#frame))
#ttranspose = loc("jit(f)/transpose(jvp(layer))/transpose"(#frame))
