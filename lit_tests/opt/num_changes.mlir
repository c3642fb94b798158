// SPDX-License-Identifier: Apache-2.0
// How often pipelines change a module: a mark, an operation's location and an entry; the rest is as it should be already.
// RUN: %python %S/Inputs/num_changes.py %s hlotag-resolve hlotag-resolve hlotag-finalize hlotag-strip{keys=k} hlotag-strip{keys=k} | FileCheck %s
// A pipeline that fails has changed nothing.
// RUN: %python %S/Inputs/num_changes.py %s "hlotag-strip{keys=own},hlotag-attach{rules=\"[3 : i32]\"}" | FileCheck %s --check-prefix=FAILED

// CHECK: hlotag-resolve: True, 3
// CHECK-NEXT: hlotag-resolve: True, 0
// CHECK-NEXT: hlotag-finalize: True, 0
// CHECK-NEXT: hlotag-strip{keys=k}: True, 1
// CHECK-NEXT: hlotag-strip{keys=k}: True, 0
// FAILED: False, 0
module attributes {hlotag.tags = [{entries = {k = "v"}}]} {
  func.func @f(%x: tensor<f32> loc("an argument")) -> tensor<f32> {
    %0 = stablehlo.sine %x : tensor<f32> loc("jit(f)/\01hlotag#0\01/sin")
    %1 = stablehlo.cosine %0 {mhlo.frontend_attributes = {own = "1"}} : tensor<f32> loc("jit(f)/cos")
    return %1 : tensor<f32>
  }
}
