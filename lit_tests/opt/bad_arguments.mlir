// SPDX-License-Identifier: Apache-2.0
// RUN: not hlotag-opt %s --hlotag-srtip 2>&1 | FileCheck %s --check-prefix=PASS
// RUN: not hlotag-opt %s --hlotag-strip=key=a 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: not hlotag-opt %s --no-such-pass 2>&1 | FileCheck %s --check-prefix=FOREIGN
// RUN: not hlotag-opt %s --pass-pipeline="func.func(hlotag-strip)" 2>&1 | FileCheck %s --check-prefix=NESTED
// RUN: not hlotag-opt %s --cse --pass-pipeline=cse 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: not hlotag-opt %t.missing 2>&1 | FileCheck %s -DMISSING=%t.missing --check-prefix=FILE

// PASS: error: unknown pass 'hlotag-srtip'; did you mean hlotag-strip?
// OPTION: unknown option 'key' of hlotag-strip; its options: keys (list of strings)
// FOREIGN: 'no-such-pass' does not refer to a registered pass
// NESTED: MLIR's pass manager cannot read 'func.func(hlotag-strip)': MLIR Textual PassPipeline Parser:1:11: error: 'hlotag-strip' does not refer to a registered pass or pass pipeline
// NESTED: hlotag's passes, and those registered with it, run on the top-level builtin.module
// BOTH: error: use either --pass-pipeline or a flag for each pass
// FILE: error: [[MISSING]]: No such file or directory
module {}
