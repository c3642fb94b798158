// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{op = \"sine\", attrs = {a = \"1\"}}, {op = \"stablehlo.cos*\", attrs = {b = \"2\"}}, {function = \"?aves\", attrs = {c = true}}]"}' | FileCheck %s --check-prefix=OP
// RUN: hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{scope = \"layer*/attn\", attrs = {k = \"v\"}}]"}' | FileCheck %s --check-prefix=SCOPE
// RUN: hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{scope = \"**/layer*/attn/**\", attrs = {k = \"v\"}}]"}' | FileCheck %s --check-prefix=SCOPE
// RUN: hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{source = \"model.py:42\", attrs = {k = \"line\"}}, {source = \"other/model.py\", attrs = {k = \"file\"}}, {source = \"*\", attrs = {any = true}}]"}' | FileCheck %s --check-prefix=SOURCE
// RUN: hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{op = \"sine\", phase = \"forward\", attrs = {k = \"f\"}}, {phase = \"backward\", attrs = {k = \"b\"}}, {op = \"tanh\", attrs = {t = \"1\"}, grad = {u = \"2\"}}, {op = \"abs\", attrs = {t = \"1\"}, grad = {}}]"}' | FileCheck %s --check-prefix=PHASE
// RUN: hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{op = \"sine\", phase = \"backward\", attrs = {k = \"b\"}, grad = {k = \"never\"}}]"}' | FileCheck %s --check-prefix=BACKWARD --implicit-check-not=never
// RUN: hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{scope = \"transpose(a)\", attrs = {k = \"s\"}}, {phase = \"backward\", attrs = {k = \"b\"}}]"}' | FileCheck %s --check-prefix=ESCAPED
// RUN: hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{op = \"sine\", attrs = {a = \"1\"}}]"},hlotag-attach{rules="[{op = \"sine\", attrs = {a = \"2\", b = \"2\"}}]"}' | FileCheck %s --check-prefix=TWICE
// RUN: hlotag-opt %s --pass-pipeline='hlotag-attach{rules="[{op = \"sine\", attrs = {a = \"1\", b = \"1\"}, grad = {a = \"2\", b = \"2\"}}]"}' | FileCheck %s --check-prefix=GRAD
// RUN: hlotag-opt %s --hlotag-attach -o %t
// RUN: hlotag-opt %s | diff - %t

// By operation, dialect or not, and by function. What is there already stays.
// OP-LABEL: func.func @waves
// OP: stablehlo.sine {{.*}} {mhlo.frontend_attributes = {a = "1", c = true}}
// OP: stablehlo.cosine {{.*}} {mhlo.frontend_attributes = {b = "2", c = true}}
// OP: stablehlo.sine {{.*}} {mhlo.frontend_attributes = {a = "own", c = true}}
// OP: return %{{[0-9]}} : tensor<f32>
// TWICE-LABEL: func.func @waves
// TWICE: stablehlo.sine {{.*}} {mhlo.frontend_attributes = {a = "1", b = "2"}}
// A key that stays gives nothing to derived operations either.
// GRAD-LABEL: func.func @waves
// GRAD: stablehlo.sine {{.*}} {hlotag.derived = {a = "2", b = "2"},
// GRAD: stablehlo.sine {{.*}} {hlotag.derived = {b = "2"}, mhlo.frontend_attributes = {a = "own", b = "1"}}
func.func @waves(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x : tensor<f32>
  %1 = stablehlo.cosine %0 : tensor<f32>
  %2 = stablehlo.sine %1 {mhlo.frontend_attributes = {a = "own"}} : tensor<f32>
  return %2 : tensor<f32>
}

// One kind of operation in two functions: the rule is for that of one.
// OP-LABEL: func.func @leaves
// OP-NEXT: stablehlo.tanh %arg0 : tensor<f32>
func.func @leaves(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.tanh %x : tensor<f32>
  return %0 : tensor<f32>
}
// OP-LABEL: func.func @caves
// OP-NEXT: stablehlo.tanh %arg0 {mhlo.frontend_attributes = {c = true}}
func.func @caves(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.tanh %x : tensor<f32>
  return %0 : tensor<f32>
}

// A scope pattern stands for whole elements of the path, which transforms do not disturb.
// SCOPE-LABEL: func.func @scopes
func.func @scopes(%x: tensor<f32>) -> tensor<f32> {
  // SCOPE: stablehlo.sine {{.*}}k = "v"
  %0 = stablehlo.sine %x : tensor<f32> loc("jit(f)/layer_0/attn/sin")
  // SCOPE: stablehlo.cosine {{.*}}k = "v"
  %1 = stablehlo.cosine %0 : tensor<f32> loc("jit(f)/transpose(jvp(decoder))/layer_1/attn/softmax/cos")
  // SCOPE: stablehlo.tanh %{{[0-9]}} : tensor<f32>
  %2 = stablehlo.tanh %1 : tensor<f32> loc("jit(f)/layer_1/attn_out/tanh")
  // SCOPE: stablehlo.abs %{{[0-9]}} : tensor<f32>
  %3 = stablehlo.abs %2 : tensor<f32> loc("jit(f)/my_layer/attn/abs")
  // A name around a position is a scope, around a range a frame of the traceback.
  // SCOPE: stablehlo.floor {{.*}}k = "v"
  %4 = stablehlo.floor %3 : tensor<f32> loc("attn/floor"("layer_2"("how to train/model.py":3:4)))
  // SCOPE: stablehlo.ceil %{{[0-9]}} : tensor<f32>
  %5 = stablehlo.ceil %4 : tensor<f32> loc("attn/ceil"("layer_2"("model.py":3:4 to :9)))
  return %5 : tensor<f32>
}

// SOURCE-LABEL: func.func @sources
func.func @sources(%x: tensor<f32>) -> tensor<f32> {
  // SOURCE: stablehlo.sine {{.*}}{any = true, k = "line"}
  %0 = stablehlo.sine %x : tensor<f32> loc("jit(f)/sin"("g"("/src/model.py":42:3)))
  // SOURCE: stablehlo.cosine {{.*}}{any = true}}
  %1 = stablehlo.cosine %0 : tensor<f32> loc("jit(f)/cos"("g"("/src/model.py":420:3)))
  // SOURCE: stablehlo.tanh {{.*}}{any = true, k = "file"}
  %2 = stablehlo.tanh %1 : tensor<f32> loc("jit(f)/tanh"("g"("/a/other/model.py":1:1)))
  // SOURCE: stablehlo.abs {{.*}}{any = true}}
  %3 = stablehlo.abs %2 : tensor<f32> loc("jit(f)/abs"("g"("/src/my_model.py":42:3)))
  // No file, so no pattern is for it.
  // SOURCE: stablehlo.floor %{{[0-9]}} : tensor<f32>
  %4 = stablehlo.floor %3 : tensor<f32> loc("jit(f)/floor")
  return %4 : tensor<f32>
}

// In a rule for the backward pass `attrs` is for the operations of that pass.
// BACKWARD-LABEL: func.func @phases
// BACKWARD: stablehlo.sine %{{[a-z0-9]*}} : tensor<f32>
// BACKWARD: stablehlo.sine {{.*}} {mhlo.frontend_attributes = {k = "b"}}
// PHASE-LABEL: func.func @phases
func.func @phases(%x: tensor<f32>) -> tensor<f32> {
  // PHASE: stablehlo.sine {{.*}} {hlotag.derived = {k = ["hlotag.unset"]}, mhlo.frontend_attributes = {k = "f"}}
  %0 = stablehlo.sine %x : tensor<f32> loc("jit(f)/jvp()/sin")
  // PHASE: stablehlo.tanh {{.*}} {hlotag.derived = {t = ["hlotag.unset"], u = "2"}, mhlo.frontend_attributes = {t = "1"}}
  %1 = stablehlo.tanh %0 : tensor<f32> loc("jit(f)/jvp()/tanh")
  // PHASE: stablehlo.abs {{.*}} {hlotag.derived = {t = ["hlotag.unset"]}, mhlo.frontend_attributes = {t = "1"}}
  %2 = stablehlo.abs %1 : tensor<f32> loc("jit(f)/jvp()/abs")
  // PHASE: stablehlo.sine {{.*}} {mhlo.frontend_attributes = {k = "b"}}
  %3 = stablehlo.sine %2 : tensor<f32> loc("jit(f)/transpose(jvp())/sin")
  // PHASE: stablehlo.tanh {{.*}} {mhlo.frontend_attributes = {k = "b", u = "2"}}
  %4 = stablehlo.tanh %3 : tensor<f32> loc("jit(f)/transpose(jvp())/tanh")
  return %4 : tensor<f32>
}

// What lowering has escaped is text of a scope.
// ESCAPED-LABEL: func.func @escaped
func.func @escaped(%x: tensor<f32>) -> tensor<f32> {
  // ESCAPED: stablehlo.sine {{.*}}k = "s"
  %0 = stablehlo.sine %x : tensor<f32> loc("jit(f)/jvp(transpose\01%28a\01%29)/sin")
  // ESCAPED: stablehlo.cosine {{.*}}k = "b"
  %1 = stablehlo.cosine %0 : tensor<f32> loc("jit(f)/transpose(jvp(a))/cos")
  // ESCAPED: stablehlo.tanh %{{[0-9]}} : tensor<f32>
  %2 = stablehlo.tanh %1 : tensor<f32> loc("jit(f)/a\01%29/transpose\01%28b/tanh")
  return %2 : tensor<f32>
}
