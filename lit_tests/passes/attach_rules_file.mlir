// SPDX-License-Identifier: Apache-2.0
// Rules from a TOML file; what is reported names the lines of tables, and of wrong fields.
// RUN: hlotag-opt %s --hlotag-attach="rules-file='%S/Inputs/rules.toml'" 2>%t | FileCheck %s --implicit-check-not=frontend_attributes
// RUN: FileCheck %s --check-prefix=REPORT < %t
// A second run finds nothing to do.
// RUN: hlotag-opt %s --hlotag-attach="rules-file=%S/Inputs/rules.toml" --hlotag-attach="rules-file=%S/Inputs/rules.toml" | FileCheck %s --implicit-check-not=frontend_attributes
// Rules in the text come after the file's, and win.
// RUN: hlotag-opt %s --pass-pipeline='hlotag-attach{rules-file=%S/Inputs/rules.toml rules="[{op = \"sine\", attrs = {k = \"text\"}}]"}' | FileCheck %s --check-prefix=BOTH --implicit-check-not=frontend_attributes

// RUN: not hlotag-opt %s --hlotag-attach="rules-file=%t.none" 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: hlotag-opt: error: {{.*}}.none: No such file or directory
// RUN: %python -c "open('%t.toml', 'w').write('[[rule]]\nop = \"a\"\nattrs = {k = \"v\"}\n\n[[rule]]\nattrs = {k = \"v\"}\nop = \"a\"\nphase = \"sideways\"\n')"
// RUN: not hlotag-opt %s --hlotag-attach="rules-file=%t.toml" 2>&1 | FileCheck %s --check-prefix=FIELD
// FIELD: hlotag-opt: error: {{.*}}.toml:8: rule 2: rule field 'phase' must be 'forward', 'backward' or 'both', got 'sideways'
// FIELD-NEXT: phase = "sideways"

// REPORT: warning: rule 3 ({{.*}}rules.toml:10) sets 'j' to "later" where rule 1 ({{.*}}rules.toml:2) sets it to "file"; the later rule wins
// REPORT: remark: rule 2 ({{.*}}rules.toml:6) matched nothing: {attrs = {k = "none"}, op = "tanh", phase = "both"}

func.func @f(%x: tensor<f32>) -> tensor<f32> {
  // CHECK: stablehlo.sine {{.*}}mhlo.frontend_attributes = {j = "later", k = "file"}
  // BOTH: stablehlo.sine {{.*}}mhlo.frontend_attributes = {j = "later", k = "text"}
  %0 = stablehlo.sine %x : tensor<f32>
  return %0 : tensor<f32>
}
