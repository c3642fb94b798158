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

// The cotangents of %x, which go through both conversions as they are, are added for the later transposed one of these, of which
// nothing else is left. The exponential's derivative, at the same place, only made what is added.
// CHECK-LABEL: func.func @sum
func.func @sum(%x: tensor<4xf32>, %g: tensor<4xf32>, %h: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.convert %x : tensor<4xf32> loc(#convert)
  %1 = stablehlo.exponential %0 {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc(#mul)
  %2 = stablehlo.convert %x : tensor<4xf32> loc(#convert2)
  %3 = stablehlo.sine %2 : tensor<4xf32> loc(#sin)
  %4 = stablehlo.cosine %2 : tensor<4xf32> loc(#cos)
  %5 = stablehlo.multiply %h, %4 : tensor<4xf32> loc(#tmul2)
  // CHECK: stablehlo.multiply %arg1, %{{.*}} {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32>
  %6 = stablehlo.multiply %g, %1 : tensor<4xf32> loc(#tmul)
  // CHECK: stablehlo.add %{{[0-9]+}}, %{{[0-9]+}} : tensor<4xf32>
  %7 = stablehlo.add %5, %6 : tensor<4xf32> loc(#tsum)
  return %1, %3, %7 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

#frame = loc("f"("model.py":3:11 to :16))
#mul = loc("jit(f)/jvp(layer)/exp"(#frame))
#tmul = loc("jit(f)/transpose(jvp(layer))/mul"(#frame))
#frame2 = loc("f"("model.py":4:11 to :16))
#convert = loc("jit(f)/jvp(layer)/convert_element_type"(#frame))
#convert2 = loc("jit(f)/jvp(layer)/convert_element_type"(#frame2))
#sin = loc("jit(f)/jvp(layer)/sin"(#frame2))
#cos = loc("jit(f)/jvp(layer)/cos"(#frame2))
#tmul2 = loc("jit(f)/transpose(jvp(layer))/mul"(#frame2))
#tsum = loc("jit(f)/transpose(jvp(layer))/add_any"(#frame))
