// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --hlotag-strip --canonicalize --mlir-print-ir-after-all -o /dev/null 2>&1 | FileCheck %s --check-prefix=AFTER-ALL
// RUN: hlotag-opt %s --hlotag-resolve --hlotag-strip --cse --mlir-print-ir-after-change -o /dev/null 2>&1 | FileCheck %s --check-prefix=CHANGE
// RUN: hlotag-opt %s --hlotag-strip --cse --mlir-print-ir-after-change --mlir-print-debuginfo --mlir-print-local-scope -o /dev/null 2>&1 | FileCheck %s --check-prefix=SCOPE
// RUN: hlotag-opt %s --hlotag-strip --cse -o /dev/null 2>&1 | FileCheck %s --check-prefix=SILENT --allow-empty

// AFTER-ALL: // -----// IR Dump After hlotag-strip //----- //
// AFTER-ALL: stablehlo.sine %arg0 : tensor<f32>
// AFTER-ALL: // -----// IR Dump After canonicalize //----- //

// CHANGE-NOT: IR Dump After
// CHANGE: IR Dump After hlotag-strip
// CHANGE-NOT: IR Dump After

// SCOPE: // -----// IR Dump After hlotag-strip //----- //
// SCOPE: stablehlo.sine %arg0 : tensor<f32> loc("f.py":3:4)

// SILENT-NOT: {{.}}
module @m {
  func.func @f(%x: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.sine %x {mhlo.frontend_attributes = {k = "v"}} : tensor<f32> loc("f.py":3:4)
    return %0 : tensor<f32>
  }
}
