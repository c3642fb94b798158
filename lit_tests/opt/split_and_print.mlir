// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --split-input-file | FileCheck %s
// RUN: hlotag-opt %s --split-input-file --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: hlotag-opt %s --split-input-file --mlir-print-debuginfo | FileCheck %s --check-prefix=LOC
// RUN: hlotag-opt %S/verify_diagnostics.mlir --split-input-file --verify-diagnostics
// RUN: hlotag-opt --emit-bytecode -o %t.bc < %S/print_ir.mlir
// RUN: hlotag-opt %t.bc | FileCheck %s --check-prefix=BYTECODE

// CHECK-LABEL: func.func private @a
// GENERIC: "func.func"() <{function_type = () -> (), sym_name = "a", sym_visibility = "private"}> ({
// LOC: #[[A:.*]] = loc("a.py":1:2)
func.func private @a() loc("a.py":1:2)
// CHECK: // -----
// CHECK-LABEL: func.func private @b
// -----
func.func private @b()

// BYTECODE: module @m
// BYTECODE: stablehlo.sine %arg0 {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
