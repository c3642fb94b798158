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
#tfloor = loc("jit(f)/transpose(jvp(layer))/floor"(#frame))
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
#tfloor = loc("jit(f)/transpose(jvp(layer))/floor"(#frame))
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
#tfloor = loc("jit(f)/transpose(jvp(layer))/floor"(#frame))
#slice = loc("jit(f)/jvp(layer)/slice"(#frame2))

// -----

// Only one of the line's equations may emit a product of this type.
// CHECK-LABEL: func.func @types
func.func @types(%x: tensor<4xf32>, %g: tensor<2xf32>) -> (tensor<4xf32>, tensor<2xf32>, tensor<2xf32>) {
  %0 = stablehlo.exponential %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc(#mul)
  %1 = stablehlo.slice %0 [0:2] : (tensor<4xf32>) -> tensor<2xf32> loc(#slice)
  %2 = stablehlo.exponential %1 {mhlo.frontend_attributes = {k = "w"}} : tensor<2xf32> loc(#mul)
  // CHECK: stablehlo.multiply %arg1, %{{[0-9]+}} {mhlo.frontend_attributes = {k = "w"}}
  %3 = stablehlo.multiply %g, %2 : tensor<2xf32> loc(#tmul)
  return %0, %2, %3 : tensor<4xf32>, tensor<2xf32>, tensor<2xf32>
}

#frame = loc("f"("model.py":3:11 to :16))
#frame2 = loc("f"("model.py":4:11 to :16))
#mul = loc("jit(f)/jvp(layer)/exp"(#frame))
#tmul = loc("jit(f)/transpose(jvp(layer))/mul"(#frame))
#tsum = loc("jit(f)/transpose(jvp(layer))/add_any"(#frame))
#tfloor = loc("jit(f)/transpose(jvp(layer))/floor"(#frame))
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
  // An operand that nothing on the line emits.
  %4 = stablehlo.floor %g : tensor<4xf32> loc(#tfloor)
  // CHECK: stablehlo.add %{{[0-9]+}}, %{{[0-9]+}} : tensor<4xf32>
  %5 = stablehlo.add %3, %4 : tensor<4xf32> loc(#tsum)
  return %0, %1, %5 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

#frame = loc("f"("model.py":3:11 to :16))
#frame2 = loc("f"("model.py":4:11 to :16))
#mul = loc("jit(f)/jvp(layer)/exp"(#frame))
#tmul = loc("jit(f)/transpose(jvp(layer))/mul"(#frame))
#tsum = loc("jit(f)/transpose(jvp(layer))/add_any"(#frame))
#tfloor = loc("jit(f)/transpose(jvp(layer))/floor"(#frame))
#slice = loc("jit(f)/jvp(layer)/slice"(#frame2))
