// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --hlotag-propagate-autodiff | FileCheck %s
// RUN: hlotag-opt %s --hlotag-propagate-autodiff --hlotag-propagate-autodiff | FileCheck %s

// Which of two equal equations of one line the product stems from cannot be told. Where both hand on
// the same entries, it does not matter.

// CHECK-LABEL: func.func @same
// ORIGINS-LABEL: func.func @same
func.func @same(%x: tensor<4xf32>, %g: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.exponential %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc(#mul)
  %1 = stablehlo.exponential %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc(#mul)
  // CHECK: stablehlo.multiply %arg1, %0 {mhlo.frontend_attributes = {k = "v"}} {{.*}}
  // ORIGINS: confidence = "1.00"
  %2 = stablehlo.multiply %g, %0 : tensor<4xf32> loc(#tmul)
  return %2 : tensor<4xf32>
}

// CHECK-LABEL: func.func @different
func.func @different(%x: tensor<4xf32>, %g: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.exponential %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc(#mul)
  %1 = stablehlo.exponential %x {mhlo.frontend_attributes = {k = "w"}} : tensor<4xf32> loc(#mul)
  // CHECK: stablehlo.multiply %{{[^,]*}}, %0 : tensor<4xf32>
  %2 = stablehlo.multiply %g, %0 : tensor<4xf32> loc(#tmul)
  return %2 : tensor<4xf32>
}

// One of them has no entries: nothing is certain.
// CHECK-LABEL: func.func @one
func.func @one(%x: tensor<4xf32>, %g: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.exponential %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc(#mul)
  %1 = stablehlo.exponential %x : tensor<4xf32> loc(#mul)
  // CHECK: stablehlo.multiply %{{[^,]*}}, %0 : tensor<4xf32>
  %2 = stablehlo.multiply %g, %0 : tensor<4xf32> loc(#tmul)
  return %2 : tensor<4xf32>
}

#frame = loc("f"("model.py":3:11 to :16))
#mul = loc("jit(f)/jvp(layer)/exp"(#frame))
#tmul = loc("jit(f)/transpose(jvp(layer))/mul"(#frame))
