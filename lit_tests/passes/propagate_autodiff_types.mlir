// SPDX-License-Identifier: Apache-2.0
// Values of complex and bounded types have derivatives; integers have none.
// RUN: hlotag-opt %s --hlotag-propagate-autodiff --split-input-file | FileCheck %s

// CHECK-LABEL: func.func public @complex
func.func public @complex(%x: tensor<4xcomplex<f32>>, %g: tensor<4xcomplex<f32>>) -> (tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) {
  %0 = stablehlo.tanh %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xcomplex<f32>> loc(#tanh)
  // CHECK: stablehlo.multiply {{.*}}k = "v"
  %1 = stablehlo.multiply %g, %0 : tensor<4xcomplex<f32>> loc(#mul)
  return %0, %1 : tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>
}
#frame = loc("f"("model.py":3:11 to :16))
#tanh = loc("jit(f)/jvp()/tanh"(#frame))
#mul = loc("jit(f)/transpose(jvp())/mul"(#frame))

// -----

// CHECK-LABEL: func.func public @bounded
func.func public @bounded(%x: tensor<?xf32, #stablehlo.bounds<4>>, %g: tensor<?xf32, #stablehlo.bounds<4>>) -> (tensor<?xf32, #stablehlo.bounds<4>>, tensor<?xf32, #stablehlo.bounds<4>>) {
  %0 = stablehlo.tanh %x {mhlo.frontend_attributes = {k = "v"}} : tensor<?xf32, #stablehlo.bounds<4>> loc(#tanh)
  // CHECK: stablehlo.multiply {{.*}}k = "v"
  %1 = stablehlo.multiply %g, %0 : tensor<?xf32, #stablehlo.bounds<4>> loc(#mul)
  return %0, %1 : tensor<?xf32, #stablehlo.bounds<4>>, tensor<?xf32, #stablehlo.bounds<4>>
}
#frame = loc("f"("model.py":3:11 to :16))
#tanh = loc("jit(f)/jvp()/tanh"(#frame))
#mul = loc("jit(f)/transpose(jvp())/mul"(#frame))

// -----

// CHECK-LABEL: func.func public @integers
func.func public @integers(%x: tensor<4xi32>, %g: tensor<4xf32>) -> (tensor<4xi32>, tensor<4xf32>) {
  %0 = stablehlo.negate %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xi32> loc(#neg)
  // CHECK: stablehlo.negate %arg1 : tensor<4xf32>
  %1 = stablehlo.negate %g : tensor<4xf32> loc(#back)
  return %0, %1 : tensor<4xi32>, tensor<4xf32>
}
#frame = loc("f"("model.py":3:11 to :16))
#neg = loc("jit(f)/jvp()/neg"(#frame))
#back = loc("jit(f)/transpose(jvp())/neg"(#frame))
