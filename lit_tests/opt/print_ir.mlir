// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --hlotag-strip --canonicalize --mlir-print-ir-after-all -o /dev/null 2>&1 | FileCheck %s --check-prefix=AFTER-ALL
// RUN: hlotag-opt %s --hlotag-strip --canonicalize --mlir-print-ir-before-all -o /dev/null 2>&1 | FileCheck %s --check-prefix=BEFORE-ALL
// RUN: hlotag-opt %s --hlotag-resolve --hlotag-strip --cse --mlir-print-ir-after-change -o /dev/null 2>&1 | FileCheck %s --check-prefix=CHANGE
// RUN: hlotag-opt %s --hlotag-strip --cse --mlir-print-ir-before=cse -o /dev/null 2>&1 | FileCheck %s --check-prefix=BEFORE
// RUN: hlotag-opt %s --hlotag-strip --cse --mlir-print-ir-after=hlotag-strip --mlir-print-ir-module-scope --mlir-print-debuginfo --mlir-print-local-scope -o /dev/null 2>&1 | FileCheck %s --check-prefix=SCOPE
// RUN: hlotag-opt %s --hlotag-strip --cse -o /dev/null 2>&1 | FileCheck %s --check-prefix=SILENT --allow-empty

// AFTER-ALL: // -----// IR Dump After HlotagStrip (hlotag-strip) //----- //
// AFTER-ALL: stablehlo.sine %arg0 : tensor<f32>
// AFTER-ALL: // -----// IR Dump After canonicalize //----- //

// BEFORE-ALL: // -----// IR Dump Before HlotagStrip (hlotag-strip) //----- //
// BEFORE-ALL: stablehlo.sine %arg0 {mhlo.frontend_attributes = {k = "v"}}
// BEFORE-ALL: // -----// IR Dump Before canonicalize //----- //

// CHANGE-NOT: IR Dump After {{HlotagResolve|cse}}
// CHANGE: IR Dump After HlotagStrip
// CHANGE-NOT: IR Dump After {{HlotagResolve|cse}}

// BEFORE-NOT: IR Dump
// BEFORE: // -----// IR Dump Before cse //----- //
// BEFORE-NOT: IR Dump

// SCOPE: // -----// IR Dump After HlotagStrip (hlotag-strip) ('builtin.module' operation: @m) //----- //
// SCOPE: stablehlo.sine {{.*}} loc("f.py":3:4)

// SILENT-NOT: {{.}}
module @m {
  func.func @f(%x: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.sine %x {mhlo.frontend_attributes = {k = "v"}} : tensor<f32> loc("f.py":3:4)
    return %0 : tensor<f32>
  }
}
