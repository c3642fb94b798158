// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{scope = \"layer_{n}/attn\", attrs = {k = \"attention {n}\"}}]"}' | FileCheck %s --check-prefix=NAME --implicit-check-not=frontend_attributes
// RUN: hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{scope = \"layer_*\", unless = [{scope = \"layer_1\"}, {op = \"tanh\", function = \"f\"}], attrs = {k = \"v\"}}]"}' | FileCheck %s --check-prefix=UNLESS
// RUN: hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{scope = \"layer_*\", attrs = {k = \"f\"}, grad = {k = \"d\"}, remat = {k = \"r\"}}]"}' | FileCheck %s --check-prefix=REMAT
// RUN: hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{scope = \"s?\", attrs = {k = \"v\"}}, {function = \"?\", attrs = {l = \"v\"}}]"}' | FileCheck %s --check-prefix=ONE
// RUN: hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{scope = \"*\", attrs = {k = \"v\"}}]"}' | FileCheck %s --check-prefix=ANY

// A name in braces is text of one element, for values.
// NAME-LABEL: func.func @f
// UNLESS-LABEL: func.func @f
// REMAT-LABEL: func.func @f
func.func @f(%x: tensor<f32>) -> tensor<f32> {
  // NAME: stablehlo.sine {{.*}}k = "attention 0"
  // UNLESS: stablehlo.sine {{.*}}k = "v"
  // REMAT: stablehlo.sine {{.*}}{k = "f"}
  %0 = stablehlo.sine %x : tensor<f32> loc("jit(f)/layer_0/attn/sin")
  // NAME: stablehlo.cosine {{.*}}k = "attention 12"
  // UNLESS: stablehlo.cosine {{.*}}k = "v"
  // REMAT: stablehlo.cosine {{.*}}{k = "d"}
  %1 = stablehlo.cosine %0 : tensor<f32> loc("jit(f)/transpose(jvp(decoder))/layer_12/attn/softmax/cos")
  // NAME: stablehlo.abs %{{[0-9]}} : tensor<f32>
  // UNLESS: stablehlo.abs %{{[0-9]}} : tensor<f32>
  %2 = stablehlo.abs %1 : tensor<f32> loc("jit(f)/layer_1/x/attn/abs")
  // UNLESS: stablehlo.tanh %{{[0-9]}} : tensor<f32>
  %3 = stablehlo.tanh %2 : tensor<f32> loc("jit(f)/layer_3/tanh")
  // NAME: stablehlo.negate %{{[0-9]}} : tensor<f32>
  // REMAT: stablehlo.negate {{.*}}{k = "r"}
  %4 = stablehlo.negate %3 : tensor<f32> loc("jit(f)/transpose(jvp(layer_4))/checkpoint/rematted_computation/neg")
  // The innermost match counts.
  // NAME: stablehlo.floor {{.*}}k = "attention 6"
  %5 = stablehlo.floor %4 : tensor<f32> loc("jit(f)/layer_5/attn/layer_6/attn/floor")
  return %5 : tensor<f32>
}

// UNLESS-LABEL: func.func @g
// UNLESS: stablehlo.tanh {{.*}}k = "v"
func.func @g(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.tanh %x : tensor<f32> loc("jit(f)/layer_3/tanh")
  return %0 : tensor<f32>
}

// `?` is a character, of any number of bytes.
// ONE-LABEL: func.func @"\C3\A9"
// ONE-NEXT: stablehlo.sine %arg0 {mhlo.frontend_attributes = {k = "v", l = "v"}} : tensor<f32>
// ONE-NEXT: stablehlo.cosine %0 {mhlo.frontend_attributes = {l = "v"}} : tensor<f32>
func.func @"\C3\A9"(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x : tensor<f32> loc("jit(f)/sé/sin")
  %1 = stablehlo.cosine %0 : tensor<f32> loc("jit(f)/séé/cos")
  return %1 : tensor<f32>
}

// Any scope, but one there must be, as in a stage.
// ANY-LABEL: func.func @scopes
// ANY-NEXT: stablehlo.sine %arg0 : tensor<f32>
// ANY-NEXT: stablehlo.cosine %0 {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
func.func @scopes(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x : tensor<f32> loc("jit(f)/sin")
  %1 = stablehlo.cosine %0 : tensor<f32> loc("jit(f)/a/cos")
  return %1 : tensor<f32>
}
