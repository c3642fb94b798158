// SPDX-License-Identifier: Apache-2.0
// RUN: not hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{op = "}' 2>&1 | FileCheck %s --check-prefix=SYNTAX
// SYNTAX: error: rules must be an MLIR array attribute, and this does not parse: [{op =
// RUN: not hlotag-opt %s --pass-pipeline='hlotag-attach{rules="{op = 1 : i32}"}' 2>&1 | FileCheck %s --check-prefix=ARRAY
// ARRAY: error: 'rules' must be an array, but is {op = 1 : i32}
// RUN: not hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[3 : i32]"}' 2>&1 | FileCheck %s --check-prefix=RULE
// RULE: error: 'rule 1' must be a dictionary, but is 3 : i32
// RUN: not hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{op = \"a\", attrs = {k = \"v\"}}, {opp = \"a\"}]"}' 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: error: 'rule 2.opp' is an unknown field; fields are op, scope, source, function, phase, attrs, grad, remat, unless
// RUN: not hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{op = \"a\", unless = {op = \"b\"}, attrs = {k = \"v\"}}]"}' 2>&1 | FileCheck %s --check-prefix=UNLESS
// UNLESS: error: 'rule 1.unless' must be an array, but is {op = "b"}
// RUN: not hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{op = \"a\", unless = [{opp = \"b\"}], attrs = {k = \"v\"}}]"}' 2>&1 | FileCheck %s --check-prefix=CLAUSE
// CLAUSE: error: 'rule 1.unless[0].opp' is an unknown field; fields are op, scope, source, function
// RUN: not hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{op = 1 : i32, attrs = {}}]"}' 2>&1 | FileCheck %s --check-prefix=TYPE
// TYPE: error: 'rule 1.op' must be a string, but is 1 : i32
// RUN: not hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{op = \"a\", phase = \"sideways\", attrs = {k = \"v\"}}]"}' 2>&1 | FileCheck %s --check-prefix=PHASE
// PHASE: error: 'rule 1.phase' must be "forward", "backward" or "both", but is "sideways"
// RUN: not hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{op = \"a\"}]"}' 2>&1 | FileCheck %s --check-prefix=ATTRS
// ATTRS: error: 'rule 1.attrs' is missing or empty
// RUN: not hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{op = \"a\", attrs = {k = 1 : i32}}]"}' 2>&1 | FileCheck %s --check-prefix=VALUE
// VALUE: error: 'rule 1.attrs.k' must be a string or a bool, but is 1 : i32
// RUN: not hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{op = \"a\", attrs = {k = \"v\"}, grad = {xla.sdy.x = \"v\"}}]"}' 2>&1 | FileCheck %s --check-prefix=KEY
// KEY: error: 'rule 1.grad.xla.sdy.x' has a key that is reserved
// RUN: not hlotag-opt %S/resolve.mlir --split-input-file --pass-pipeline='hlotag-attach{rules="[{op = \"sine\", attrs = {k = \"v\"}}]"}' 2>&1 | FileCheck %s --check-prefix=MARKS
// MARKS: error: rules cannot read names that still have marks: the module has 'hlotag.tags'; run hlotag-resolve first

// Not errors: rules that disagree, and rules that match nothing.
// RUN: hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{op = \"sine\", attrs = {k = \"1\"}}, {op = \"tanh\", attrs = {k = \"v\"}}, {op = \"sin*\", attrs = {k = \"2\"}}]"}' 2>&1 | FileCheck %s --check-prefix=REPORT
// REPORT: warning: rule 3 sets 'k' to "2" where rule 1 sets it to "1"; the later rule wins
// REPORT-NOT: warning
// REPORT: remark: rule 2 matched nothing: {attrs = {k = "v"}, op = "tanh"}
// REPORT: stablehlo.sine {{.*}}mhlo.frontend_attributes = {k = "2"}
// Reported once, though the operations have different origins.
// RUN: hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{op = \"tan\", scope = \"a\", attrs = {k = \"1\"}}, {op = \"tan\", attrs = {k = \"2\"}}]"}' 2>&1 | FileCheck %s --check-prefix=ONCE
// ONCE: warning: rule 2 sets 'k' to "2" where rule 1 sets it to "1"; the later rule wins
// ONCE-NOT: warning
// ONCE-COUNT-2: stablehlo.tan {{.*}}mhlo.frontend_attributes = {k = "2"}
func.func @f(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x : tensor<f32>
  %1 = stablehlo.sine %0 : tensor<f32>
  %2 = stablehlo.tan %1 : tensor<f32> loc("jit(f)/a/tan")
  %3 = stablehlo.tan %2 : tensor<f32> loc("jit(f)/a/b/tan")
  return %3 : tensor<f32>
}
