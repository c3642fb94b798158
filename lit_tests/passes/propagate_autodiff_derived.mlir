// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --hlotag-propagate-autodiff --split-input-file | FileCheck %s 

// CHECK-LABEL: func.func @derived
func.func @derived(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.sine %x {hlotag.derived = {a = "2"}, mhlo.frontend_attributes = {a = "1", m = "3"}} : tensor<4xf32> loc(#sin)
  %1 = stablehlo.cosine %x : tensor<4xf32> loc(#cos)
  // CHECK: stablehlo.multiply {{.*}} {mhlo.frontend_attributes = {a = "2", m = "3"}}
  %2 = stablehlo.multiply %g, %1 : tensor<4xf32> loc(#tsin)
  return %0, %2 : tensor<4xf32>, tensor<4xf32>
}

#frame = loc("f"("model.py":3:11 to :16))
#sin = loc("jit(f)/jvp()/sin"(#frame))
#cos = loc("jit(f)/jvp()/cos"(#frame))
#tsin = loc("jit(f)/transpose(jvp())/mul"(#frame))

// -----

// CHECK-LABEL: func.func @dropped
func.func @dropped(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.sine %x {hlotag.derived = {a = ["hlotag.unset"]}, mhlo.frontend_attributes = {a = "1"}} : tensor<4xf32> loc(#sin)
  %1 = stablehlo.cosine %x : tensor<4xf32> loc(#cos)
  // CHECK: stablehlo.multiply {{.*}} {mhlo.frontend_attributes = {a = ["hlotag.unset"]}}
  %2 = stablehlo.multiply %g, %1 : tensor<4xf32> loc(#tsin)
  return %0, %2 : tensor<4xf32>, tensor<4xf32>
}

#frame = loc("f"("model.py":3:11 to :16))
#sin = loc("jit(f)/jvp()/sin"(#frame))
#cos = loc("jit(f)/jvp()/cos"(#frame))
#tsin = loc("jit(f)/transpose(jvp())/mul"(#frame))
