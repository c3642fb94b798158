// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --split-input-file --verify-diagnostics --hlotag-apply-policies='policies="[{key = \"r\", derived = \"retag\", offset = 100}]"'

// Malformed policies.
// RUN: not hlotag-opt %s --hlotag-apply-policies='policies="{}"' 2>&1 | FileCheck %s --check-prefix=ARRAY
// ARRAY: error: policies must be an MLIR array attribute of dictionaries, got: {}
// RUN: not hlotag-opt %s --hlotag-apply-policies='policies="[{key = "' 2>&1 | FileCheck %s --check-prefix=SYNTAX
// SYNTAX: error: policies must be an MLIR array attribute of dictionaries, got: [{key =
// RUN: not hlotag-opt %s --hlotag-apply-policies='policies="[3]"' 2>&1 | FileCheck %s --check-prefix=DICTIONARY
// DICTIONARY: error: policy 1 must be a dictionary, but is 3 : i64
// RUN: not hlotag-opt %s --hlotag-apply-policies='policies="[{derived = \"drop\"}]"' 2>&1 | FileCheck %s --check-prefix=KEY
// KEY: error: policy 1 needs a 'key'
// RUN: not hlotag-opt %s --hlotag-apply-policies='policies="[{key = \"k\", derived = \"drop\"}, {key = \"k\", derived = \"same\"}]"' 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: error: policy 2 is the second for the key 'k'
// RUN: not hlotag-opt %s --hlotag-apply-policies='policies="[{key = \"xla.sdy.x\", derived = \"drop\"}]"' 2>&1 | FileCheck %s --check-prefix=RESERVED
// RESERVED: error: policy 1 is for the key 'xla.sdy.x', which is reserved
// RUN: not hlotag-opt %s --hlotag-apply-policies='policies="[{key = \"k\"}]"' 2>&1 | FileCheck %s --check-prefix=DERIVED
// DERIVED: error: policy 1 needs 'derived': "drop", "same" or "retag"
// RUN: not hlotag-opt %s --hlotag-apply-policies='policies="[{key = \"k\", derived = \"keep\"}]"' 2>&1 | FileCheck %s --check-prefix=CHOICE
// CHOICE: error: policy 1 has the field 'derived', which must be "drop", "same" or "retag", but is "keep"
// RUN: not hlotag-opt %s --hlotag-apply-policies='policies="[{key = \"k\", derived = \"retag\"}]"' 2>&1 | FileCheck %s --check-prefix=HOW
// HOW: error: policy 1 needs an 'offset' or a 'suffix' for the new ids
// RUN: not hlotag-opt %s --hlotag-apply-policies='policies="[{key = \"k\", derived = \"drop\", offset = 1}]"' 2>&1 | FileCheck %s --check-prefix=WITHOUT
// WITHOUT: error: policy 1 has an 'offset' or a 'suffix', which are for "retag" only
// RUN: not hlotag-opt %s --hlotag-apply-policies='policies="[{key = \"k\", derived = \"retag\", offset = 0}]"' 2>&1 | FileCheck %s --check-prefix=ZERO
// ZERO: error: policy 1 would not change ids: 'offset' must not be 0, 'suffix' must not be empty
// RUN: not hlotag-opt %s --hlotag-apply-policies='policies="[{key = \"k\", derived = \"retag\", offset = 1.5}]"' 2>&1 | FileCheck %s --check-prefix=INTEGER
// INTEGER: error: policy 1 has the field 'offset', which must be an integer, but is 1.5
// RUN: not hlotag-opt %s --hlotag-apply-policies='policies="[{key = \"k\", derived = \"retag\", suffix = 2}]"' 2>&1 | FileCheck %s --check-prefix=STRING
// STRING: error: policy 1 has the field 'suffix', which must be a string, but is 2 : i64
// RUN: not hlotag-opt %s --hlotag-apply-policies='policies="[{kex = \"k\"}]"' 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: error: policy 1 has an unknown field 'kex'; fields are key, derived, offset, suffix

func.func @text(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {r = "id"}} : tensor<f32>
  // expected-error@unknown {{cannot retag 'r' = "id": 'offset' needs an integer and a sum within 64 bits, and the policy has no 'suffix'}}
  %1 = stablehlo.sine %0 {mhlo.frontend_attributes = {r = "id"}} : tensor<f32> loc("jit(f)/transpose(jvp())/mul")
  return %1 : tensor<f32>
}

// -----

func.func @overflow(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {r = "9223372036854775807"}} : tensor<f32>
  // expected-error@unknown {{cannot retag 'r' = "9223372036854775807": 'offset' needs an integer and a sum within 64 bits}}
  %1 = stablehlo.sine %0 {mhlo.frontend_attributes = {r = "9223372036854775807"}} : tensor<f32> loc("jit(f)/transpose(jvp())/mul")
  return %1 : tensor<f32>
}

// -----

func.func @taken(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {r = "1"}} : tensor<f32>
  %1 = stablehlo.sine %0 {mhlo.frontend_attributes = {r = "101"}} : tensor<f32>
  // expected-error@unknown {{cannot retag 'r' = "1": the id '101' is in use; choose another 'offset' or 'suffix'}}
  %2 = stablehlo.sine %1 {mhlo.frontend_attributes = {r = "1"}} : tensor<f32> loc("jit(f)/transpose(jvp())/mul")
  return %2 : tensor<f32>
}

// -----

func.func @dictionary(%x: tensor<f32>) -> tensor<f32> {
  // expected-error@below {{attribute 'mhlo.frontend_attributes' must be a dictionary, but is unit}}
  %0 = stablehlo.sine %x {mhlo.frontend_attributes} : tensor<f32>
  return %0 : tensor<f32>
}

// -----

// In use in the backward pass alone.
func.func @taken_behind(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {r = "1"}} : tensor<f32>
  %1 = stablehlo.sine %0 {mhlo.frontend_attributes = {r = "101"}} : tensor<f32> loc("jit(f)/transpose(jvp())/sin")
  // expected-error@unknown {{cannot retag 'r' = "1": the id '101' is in use; choose another 'offset' or 'suffix'}}
  %2 = stablehlo.sine %1 {mhlo.frontend_attributes = {r = "1"}} : tensor<f32> loc("jit(f)/transpose(jvp())/mul")
  return %2 : tensor<f32>
}

// -----

// Two ids that would become one.
func.func @merged(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {r = "1"}} : tensor<f32>
  %1 = stablehlo.sine %0 {mhlo.frontend_attributes = {r = "01"}} : tensor<f32>
  %2 = stablehlo.sine %1 {mhlo.frontend_attributes = {r = "1"}} : tensor<f32> loc("jit(f)/transpose(jvp())/mul")
  // expected-error@unknown {{cannot retag 'r' = "01": the id '101' is in use; choose another 'offset' or 'suffix'}}
  %3 = stablehlo.sine %2 {mhlo.frontend_attributes = {r = "01"}} : tensor<f32> loc("jit(f)/transpose(jvp())/sin")
  return %3 : tensor<f32>
}
