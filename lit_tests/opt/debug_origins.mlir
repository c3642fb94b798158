// SPDX-License-Identifier: Apache-2.0
// Where entries come from, for each pass that adds some. Without --debug-origins nobody says so.
// RUN: hlotag-opt %s --split-input-file --debug-origins --mlir-print-local-scope --pass-pipeline='hlotag-resolve,hlotag-attach{rules="[{op = \"sine\", attrs = {r = \"1\", s = \"1\"}}, {op = \"s*ne\", attrs = {s = \"2\"}}]"},hlotag-propagate,hlotag-propagate-autodiff,hlotag-finalize' | FileCheck %s
// A second run finds nothing to do.
// RUN: hlotag-opt %s --split-input-file --debug-origins --pass-pipeline='hlotag-resolve,hlotag-attach{rules="[{op = \"sine\", attrs = {r = \"1\", s = \"1\"}}, {op = \"s*ne\", attrs = {s = \"2\"}}]"},hlotag-propagate,hlotag-propagate-autodiff,hlotag-finalize,hlotag-attach{rules="[{op = \"sine\", attrs = {r = \"1\", s = \"1\"}}, {op = \"s*ne\", attrs = {s = \"2\"}}]"},hlotag-propagate,hlotag-propagate-autodiff,hlotag-finalize' | FileCheck %s
// RUN: hlotag-opt %s --split-input-file --hlotag-resolve --hlotag-propagate --hlotag-propagate-autodiff --hlotag-finalize | FileCheck %s --check-prefix=OFF --implicit-check-not=hlotag.origins
// Records go with their entries, also when nothing is recorded.
// RUN: hlotag-opt %s --split-input-file --debug-origins --hlotag-resolve --hlotag-propagate -o %t
// RUN: hlotag-opt %t --split-input-file --hlotag-strip | FileCheck %s --check-prefix=OFF --implicit-check-not=hlotag.origins
// RUN: hlotag-opt %t --split-input-file --hlotag-strip=keys=k | FileCheck %s --check-prefix=STRIPPED
// OFF: module @resolve

// CHECK-LABEL: module @resolve
// STRIPPED-LABEL: module @resolve
module @resolve attributes {hlotag.tags = [{entries = {k = "v", l = "v"}}, {entries = {k = "w", l = ["hlotag.unset"]}}]} {
  func.func @main(%x: tensor<f32>) -> tensor<f32> {
    // CHECK: stablehlo.abs %arg0 {hlotag.origins = {k = {pass = "hlotag-resolve", step = "tag of the program"}, l = {pass = "hlotag-resolve", step = "tag of the program"}}, mhlo.frontend_attributes = {k = "v", l = "v"}}
    // STRIPPED: stablehlo.abs %arg0 {hlotag.origins = {l = {pass = "hlotag-resolve", step = "tag of the program"}}, mhlo.frontend_attributes = {l = "v"}}
    %0 = stablehlo.abs %x : tensor<f32> loc("jit(f)/jvp(\01hlotag#0\01)/abs")
    // CHECK: stablehlo.negate %0 {hlotag.origins = {k = {pass = "hlotag-resolve", step = "tag of the program"}}, mhlo.frontend_attributes = {k = "w"}}
    // What a tag takes away is an entry until hlotag-finalize.
    // STRIPPED: stablehlo.negate %0 {hlotag.origins = {l = {pass = "hlotag-resolve", step = "tag of the program"}}, mhlo.frontend_attributes = {l = ["hlotag.unset"]}}
    %1 = stablehlo.negate %0 : tensor<f32> loc("jit(f)/transpose(jvp(\01hlotag#1\01))/neg")
    return %1 : tensor<f32>
  }
}

// -----

// Each key has the rule that won; what was there before has no record.
// CHECK-LABEL: module @attach
module @attach {
  func.func @main(%x: tensor<f32>) -> tensor<f32> {
    // CHECK: stablehlo.sine %arg0 {hlotag.origins = {r = {pass = "hlotag-attach", step = "rule 1: {attrs = {r = \221\22, s = \221\22}, op = \22sine\22}"}, s = {pass = "hlotag-attach", step = "rule 2: {attrs = {s = \222\22}, op = \22s*ne\22}"}}, mhlo.frontend_attributes = {r = "1", s = "2"}}
    %0 = stablehlo.sine %x : tensor<f32>
    // CHECK: stablehlo.sine %0 {hlotag.origins = {r = {pass = "hlotag-attach", step = "rule 1: {attrs = {r = \221\22, s = \221\22}, op = \22sine\22}"}}, mhlo.frontend_attributes = {r = "1", s = "own"}}
    %1 = stablehlo.sine %0 {mhlo.frontend_attributes = {s = "own"}} : tensor<f32>
    return %1 : tensor<f32>
  }
}

// -----

// CHECK-LABEL: module @regions_and_calls
module @regions_and_calls {
  func.func @main(%i: tensor<i32>, %x: tensor<f32>) -> tensor<f32> {
    // CHECK: stablehlo.abs %arg1 {hlotag.origins = {k = {from = "stablehlo.case at model.py:3:1", pass = "hlotag-propagate", step = "in its region"}}, mhlo.frontend_attributes = {k = "v"}}
    // CHECK: func.call @f(%1) {hlotag.origins = {k = {from = "stablehlo.case at model.py:3:1", pass = "hlotag-propagate", step = "in its region"}}, mhlo.frontend_attributes = {k = "v"}}
    %0 = "stablehlo.case"(%i) ({
      %1 = stablehlo.abs %x : tensor<f32>
      %2 = func.call @f(%1) : (tensor<f32>) -> tensor<f32> loc("jit(f)/\01g \7F/call")
      stablehlo.return %2 : tensor<f32>
    }) {mhlo.frontend_attributes = {k = "v"}} : (tensor<i32>) -> tensor<f32> loc("model.py":3:1)
    return %0 : tensor<f32>
  }
  // CHECK-LABEL: func.func private @f
  // CHECK: stablehlo.negate %arg0 {hlotag.origins = {k = {from = "func.call at \22jit(f)/\\01g \\7F/call\22", pass = "hlotag-propagate", step = "in the function it calls"}}, mhlo.frontend_attributes = {k = "v"}}
  func.func private @f(%x: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.negate %x : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// CHECK-LABEL: module @autodiff
module @autodiff {
  func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %g: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8x8xf32>) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {mhlo.frontend_attributes = {k = "v"}} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc("jit(f)/jvp(layer)/dot_general"("f"("model.py":3:11 to :16)))
    // CHECK: stablehlo.dot_general %arg2, %arg0, contracting_dims = [0] x [0] {hlotag.origins = {k = {confidence = "1.00", from = "stablehlo.dot_general at model.py:3:11", pass = "hlotag-propagate-autodiff", step = "derived by autodiff"}}, mhlo.frontend_attributes = {k = "v"}}
    %1 = stablehlo.dot_general %g, %x, contracting_dims = [0] x [0] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32> loc("jit(f)/transpose(jvp(layer))/dot_general"("f"("model.py":3:11 to :16)))
    // CHECK-NEXT: stablehlo.dot_general %arg2, %arg1, contracting_dims = [1] x [1] {hlotag.origins = {k = {confidence = "1.00", from = "stablehlo.dot_general at model.py:3:11", pass = "hlotag-propagate-autodiff", step = "derived by autodiff"}}, mhlo.frontend_attributes = {k = "v"}}
    %2 = stablehlo.dot_general %g, %w, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc("jit(f)/transpose(jvp(layer))/dot_general"("f"("model.py":3:11 to :16)))
    return %0, %1 : tensor<4x8xf32>, tensor<8x8xf32>
  }
}
