// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --hlotag-stats 2>&1 | FileCheck %s
// RUN: hlotag-opt %s --hlotag-stats="output=%t.json" 2>&1 | FileCheck %s --check-prefix=QUIET
// RUN: FileCheck %s --check-prefix=FILE < %t.json
// RUN: %python -c "import json, sys; s = json.load(open(sys.argv[1])); assert list(s['keys']['text']['values']) == ['\x07', ' \"\\\\/\x7f', '\u00e9', '\udced\udca0\udc80', '\udcff'], s" %t.json
// Nothing changes, so a second run says the same.
// RUN: hlotag-opt %s --hlotag-stats --hlotag-stats="output=%t.again" --mlir-print-ir-after-change 2>&1 | FileCheck %s --check-prefix=SAME
// RUN: cmp %t.json %t.again
// RUN: not hlotag-opt %s --hlotag-stats="output=%t.none/file" 2>&1 | FileCheck %s --check-prefix=FAIL

// CHECK: remark: {"ops": 10, "tagged": 8, "untagged": 2, "functions": 2, "keys": {"k":
// CHECK-SAME: {"ops": 4, "values": {"1 : i32": {"ops": 1, "kinds": {"stablehlo.abs": 1}, "phases": {"backward": 1}, "functions": {"main": 1}},
// CHECK-SAME: "v": {"ops": 3, "kinds": {"func.call": 1, "stablehlo.sine": 2}, "phases": {"backward": 2, "forward": 1}, "functions": {"f": 1, "main": 2}}}},
// CHECK-SAME: "outside": {"ops": 1, "values": {"1": {"ops": 1, "kinds": {"stablehlo.constant": 1}, "phases": {"forward": 1}, "functions": {"": 1}}}},
// CHECK-SAME: "text": {"ops": 5, "values": {"\u0007": {"ops": 1,
// CHECK-SAME: " \"\\/\u007f": {"ops": 1,
// CHECK-SAME: "é": {"ops": 1,
// A surrogate is not UTF-8.
// CHECK-SAME: "\udced\udca0\udc80": {"ops": 1,
// CHECK-SAME: "\udcff": {"ops": 1,
// FILE: {"ops": 10, "tagged": 8, "untagged": 2,
// QUIET-NOT: remark
// SAME-NOT: IR Dump
// FAIL: error: cannot write '{{.*}}file': No such file or directory
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {k = "v", text = "\07"}} : tensor<f32>
  %1 = stablehlo.cosine %0 {mhlo.frontend_attributes = {text = " \22\\/\7F"}} : tensor<f32>
  %2 = stablehlo.tanh %1 {mhlo.frontend_attributes = {text = "\C3\A9"}} : tensor<f32>
  %3 = stablehlo.abs %2 {mhlo.frontend_attributes = {k = 1 : i32, text = "\FF"}} : tensor<f32> loc("jit(f)/transpose(jvp())/mul")
  %4 = stablehlo.negate %3 {mhlo.frontend_attributes = {}} : tensor<f32>
  %surrogate = stablehlo.exponential %3 {mhlo.frontend_attributes = {text = "\ED\A0\80"}} : tensor<f32>
  %5 = call @f(%4) {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<f32> loc("jit(f)/transpose(jvp(g))/jit(f)")
  return %5 : tensor<f32>
}
func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {k = "v"}} : tensor<f32> loc("sin")
  %1 = stablehlo.negate %0 : tensor<f32>
  return %1 : tensor<f32>
}
// At module level, in no function.
%outside = stablehlo.constant {mhlo.frontend_attributes = {outside = "1"}} dense<1.0> : tensor<f32>
