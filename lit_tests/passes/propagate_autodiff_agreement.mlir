// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --hlotag-propagate-autodiff --split-input-file | FileCheck %s --implicit-check-not=frontend_attributes
// RUN: hlotag-opt %s --hlotag-propagate-autodiff --hlotag-propagate-autodiff --split-input-file | FileCheck %s --implicit-check-not=frontend_attributes

// Which of two equal equations of one line the product stems from cannot be told. Where both hand on
// the same entries, it does not matter.

// ORIGINS-LABEL: func.func @same
// CHECK-LABEL: func.func @same(
// CHECK-SAME: %[[ARG0:.*]]: tensor<4xf32>, %[[ARG1:.*]]: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
func.func @same(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.exponential %[[ARG0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32>
  %0 = stablehlo.exponential %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc(#mul)
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.exponential %[[ARG0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32>
  %1 = stablehlo.exponential %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc(#mul)
  // ORIGINS: confidence = "1.00"
  // CHECK-NEXT: %[[V2:.*]] = stablehlo.multiply %[[ARG1]], %[[V0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32>
  %2 = stablehlo.multiply %g, %0 : tensor<4xf32> loc(#tmul)
  // CHECK-NEXT: return %[[V0]], %[[V1]], %[[V2]] : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT: }
}

#frame = loc("f"("model.py":3:11 to :16))
#frame2 = loc("f"("model.py":4:11 to :16))
#mul = loc("jit(f)/jvp(layer)/exp"(#frame))
#tmul = loc("jit(f)/transpose(jvp(layer))/mul"(#frame))
#tsum = loc("jit(f)/transpose(jvp(layer))/add_any"(#frame))
#slice = loc("jit(f)/jvp(layer)/slice"(#frame2))

// -----

// CHECK-LABEL: func.func @different(
// CHECK-SAME: %[[ARG0:.*]]: tensor<4xf32>, %[[ARG1:.*]]: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
func.func @different(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.exponential %[[ARG0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32>
  %0 = stablehlo.exponential %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc(#mul)
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.exponential %[[ARG0]] {mhlo.frontend_attributes = {k = "w"}} : tensor<4xf32>
  %1 = stablehlo.exponential %x {mhlo.frontend_attributes = {k = "w"}} : tensor<4xf32> loc(#mul)
  // CHECK-NEXT: %[[V2:.*]] = stablehlo.multiply %[[ARG1]], %[[V0]] : tensor<4xf32>
  %2 = stablehlo.multiply %g, %0 : tensor<4xf32> loc(#tmul)
  // CHECK-NEXT: return %[[V0]], %[[V1]], %[[V2]] : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT: }
}

#frame = loc("f"("model.py":3:11 to :16))
#frame2 = loc("f"("model.py":4:11 to :16))
#mul = loc("jit(f)/jvp(layer)/exp"(#frame))
#tmul = loc("jit(f)/transpose(jvp(layer))/mul"(#frame))
#tsum = loc("jit(f)/transpose(jvp(layer))/add_any"(#frame))
#slice = loc("jit(f)/jvp(layer)/slice"(#frame2))

// -----

// One of them has no entries: nothing is certain.
// CHECK-LABEL: func.func @one(
// CHECK-SAME: %[[ARG0:.*]]: tensor<4xf32>, %[[ARG1:.*]]: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
func.func @one(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.exponential %[[ARG0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32>
  %0 = stablehlo.exponential %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc(#mul)
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.exponential %[[ARG0]] : tensor<4xf32>
  %1 = stablehlo.exponential %x : tensor<4xf32> loc(#mul)
  // CHECK-NEXT: %[[V2:.*]] = stablehlo.multiply %[[ARG1]], %[[V0]] : tensor<4xf32>
  %2 = stablehlo.multiply %g, %0 : tensor<4xf32> loc(#tmul)
  // CHECK-NEXT: return %[[V0]], %[[V1]], %[[V2]] : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT: }
}

#frame = loc("f"("model.py":3:11 to :16))
#frame2 = loc("f"("model.py":4:11 to :16))
#mul = loc("jit(f)/jvp(layer)/exp"(#frame))
#tmul = loc("jit(f)/transpose(jvp(layer))/mul"(#frame))
#tsum = loc("jit(f)/transpose(jvp(layer))/add_any"(#frame))
#slice = loc("jit(f)/jvp(layer)/slice"(#frame2))

// -----

// The types of values tell which of two it is.
// CHECK-LABEL: func.func @types(
// CHECK-SAME: %[[ARG0:.*]]: tensor<4xf32>, %[[ARG1:.*]]: tensor<2xf32>) -> (tensor<4xf32>, tensor<2xf32>, tensor<2xf32>) {
func.func @types(%x: tensor<4xf32>, %g: tensor<2xf32>) -> (tensor<4xf32>, tensor<2xf32>, tensor<2xf32>) {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.exponential %[[ARG0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32>
  %0 = stablehlo.exponential %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc(#mul)
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.slice %[[V0]] [0:2] : (tensor<4xf32>) -> tensor<2xf32>
  %1 = stablehlo.slice %0 [0:2] : (tensor<4xf32>) -> tensor<2xf32> loc(#slice)
  // CHECK-NEXT: %[[V2:.*]] = stablehlo.exponential %[[V1]] {mhlo.frontend_attributes = {k = "w"}} : tensor<2xf32>
  %2 = stablehlo.exponential %1 {mhlo.frontend_attributes = {k = "w"}} : tensor<2xf32> loc(#mul)
  // CHECK-NEXT: %[[V3:.*]] = stablehlo.multiply %[[ARG1]], %[[V2]] {mhlo.frontend_attributes = {k = "w"}} : tensor<2xf32>
  %3 = stablehlo.multiply %g, %2 : tensor<2xf32> loc(#tmul)
  // CHECK-NEXT: return %[[V0]], %[[V2]], %[[V3]] : tensor<4xf32>, tensor<2xf32>, tensor<2xf32>
  return %0, %2, %3 : tensor<4xf32>, tensor<2xf32>, tensor<2xf32>
// CHECK-NEXT: }
}

#frame = loc("f"("model.py":3:11 to :16))
#frame2 = loc("f"("model.py":4:11 to :16))
#mul = loc("jit(f)/jvp(layer)/exp"(#frame))
#tmul = loc("jit(f)/transpose(jvp(layer))/mul"(#frame))
#tsum = loc("jit(f)/transpose(jvp(layer))/add_any"(#frame))
#slice = loc("jit(f)/jvp(layer)/slice"(#frame2))

// -----

// A sum of cotangents may stem from each of the line's equations.
// CHECK-LABEL: func.func @sum(
// CHECK-SAME: %[[ARG0:.*]]: tensor<4xf32>, %[[ARG1:.*]]: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
func.func @sum(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.exponential %[[ARG0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32>
  %0 = stablehlo.exponential %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc(#mul)
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.exponential %[[ARG0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32>
  %1 = stablehlo.exponential %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc(#mul)
  // CHECK-NEXT: %[[V2:.*]] = stablehlo.multiply %[[ARG1]], %[[V0]] {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32>
  %2 = stablehlo.multiply %g, %0 : tensor<4xf32> loc(#tmul)
  // CHECK-NEXT: %[[V3:.*]] = stablehlo.add %[[V2]], %[[ARG1]] {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32>
  %3 = stablehlo.add %2, %g : tensor<4xf32> loc(#tsum)
  // CHECK-NEXT: return %[[V0]], %[[V1]], %[[V3]] : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  return %0, %1, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT: }
}

#frame = loc("f"("model.py":3:11 to :16))
#frame2 = loc("f"("model.py":4:11 to :16))
#mul = loc("jit(f)/jvp(layer)/exp"(#frame))
#tmul = loc("jit(f)/transpose(jvp(layer))/mul"(#frame))
#tsum = loc("jit(f)/transpose(jvp(layer))/add_any"(#frame))
#slice = loc("jit(f)/jvp(layer)/slice"(#frame2))

// -----

// A product derives from products of its line. Its transpose gives the cotangent of an operand.
// CHECK-LABEL: func.func @product(
// CHECK-SAME: %[[ARG0:.*]]: tensor<4x8xf32>, %[[ARG1:.*]]: tensor<8x8xf32>, %[[ARG2:.*]]: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>) {
func.func @product(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %g: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>) {
  // CHECK-NEXT: %[[V0:.*]] = stablehlo.dot_general %[[ARG0]], %[[ARG1]], contracting_dims = [1] x [0] {mhlo.frontend_attributes = {k = "v"}} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {mhlo.frontend_attributes = {k = "v"}} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc(#dot)
  // CHECK-NEXT: %[[V1:.*]] = stablehlo.tanh %[[V0]] {mhlo.frontend_attributes = {k = "w"}} : tensor<4x8xf32>
  %1 = stablehlo.tanh %0 {mhlo.frontend_attributes = {k = "w"}} : tensor<4x8xf32> loc(#tanh)
  // CHECK-NEXT: %[[V2:.*]] = stablehlo.dot_general %[[ARG2]], %[[ARG0]], contracting_dims = [0] x [0] {mhlo.frontend_attributes = {k = "v"}} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %2 = stablehlo.dot_general %g, %x, contracting_dims = [0] x [0] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32> loc(#tdot)
  // CHECK-NEXT: %[[V3:.*]] = stablehlo.transpose %[[V2]], dims = [1, 0] {mhlo.frontend_attributes = {k = "v"}} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = stablehlo.transpose %2, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32> loc(#ttranspose)
  // CHECK-NEXT: return %[[V0]], %[[V3]], %[[V1]] : tensor<4x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>
  return %0, %3, %1 : tensor<4x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>
// CHECK-NEXT: }
}

#frame = loc("f"("model.py":3:11 to :16))
#dot = loc("jit(f)/jvp(layer)/dot_general"(#frame))
#tanh = loc("jit(f)/jvp(layer)/tanh"(#frame))
#tdot = loc("jit(f)/transpose(jvp(layer))/dot_general"(#frame))
#ttranspose = loc("jit(f)/transpose(jvp(layer))/transpose"(#frame))
