// SPDX-License-Identifier: Apache-2.0
// RUN: hlotag-opt %s --hlotag-resolve --split-input-file --verify-diagnostics

// expected-error@below {{'hlotag.tags' must be an array, but is 3 : i32}}
module attributes {hlotag.tags = 3 : i32} {}

// -----

// expected-error@below {{'hlotag.tags[1]' must be a dictionary, but is "x"}}
module attributes {hlotag.tags = [{entries = {}}, "x"]} {}

// -----

// expected-error@below {{'hlotag.tags[0].entries' must be a dictionary, but is missing}}
module attributes {hlotag.tags = [{}]} {}

// -----

// expected-error@below {{'hlotag.tags[0].entries' must be a dictionary, but is unit}}
module attributes {hlotag.tags = [{entries}]} {}

// -----

// expected-error@below {{'hlotag.tags[0].entries.k' must be a string or a bool, but is 1 : i32}}
module attributes {hlotag.tags = [{entries = {k = 1 : i32}}]} {}

// -----

module attributes {hlotag.tags = [{entries = {k = "v"}}]} {
  func.func @bad_index(%x: tensor<f32>) -> tensor<f32> {
    // expected-error@unknown {{mark 'hlotag#1' has no entry in 'hlotag.tags', which has 1}}
    %0 = stablehlo.sine %x : tensor<f32> loc("\01hlotag#1\01/sin")
    return %0 : tensor<f32>
  }
}

// -----

module attributes {hlotag.tags = [{entries = {k = "v"}}]} {
  func.func @bad_index(%x: tensor<f32>) -> tensor<f32> {
    // expected-error@unknown {{mark 'hlotag#7' has no entry in 'hlotag.tags', which has 1}}
    %0 = stablehlo.sine %x : tensor<f32> loc("a:"(callsite("b" at "transpose(\01hlotag#7\01)/c")))
    return %0 : tensor<f32>
  }
}

// -----

module attributes {hlotag.tags = []} {
  func.func @no_index(%x: tensor<f32>) -> tensor<f32> {
    // expected-error@unknown {{malformed mark in location name}}
    %0 = stablehlo.sine %x : tensor<f32> loc("\01hlotag#\01/sin")
    return %0 : tensor<f32>
  }
}

// -----

module attributes {hlotag.tags = []} {
  func.func @no_index(%x: tensor<f32>) -> tensor<f32> {
    // expected-error@unknown {{malformed mark in location name}}
    %0 = stablehlo.sine %x : tensor<f32> loc("\01hlotag#99999999999999999999999\01/sin")
    return %0 : tensor<f32>
  }
}

// -----

module attributes {hlotag.tags = []} {
  func.func @no_index(%x: tensor<f32>) -> tensor<f32> {
    // expected-error@unknown {{malformed mark in location name}}
    %0 = stablehlo.sine %x : tensor<f32> loc("\01hlotag#0")
    return %0 : tensor<f32>
  }
}

// -----

module attributes {hlotag.tags = []} {
  func.func @no_index(%x: tensor<f32>) -> tensor<f32> {
    // expected-error@unknown {{expected a number and the escape character 1 after 'hlotag#'}}
    %0 = stablehlo.sine %x : tensor<f32> loc("\01hlotag#0:\01/sin")
    return %0 : tensor<f32>
  }
}

// -----

// expected-error@below {{'hlotag.tags[0].rules' must be an array, but is "x"}}
module attributes {hlotag.tags = [{entries = {}, rules = "x"}]} {}

// -----

// expected-error@below {{'hlotag.tags[0].rules[0].rule' must be an index into 'hlotag.rules', but is "0"}}
module attributes {hlotag.tags = [{entries = {}, rules = [{rule = "0", entries = {}}]}]} {}

// -----

// expected-error@below {{'hlotag.tags[0].rules[0].op' must be a string, but is 1 : i32}}
module attributes {hlotag.rules = [{name = "rule 1", text = ""}], hlotag.tags = [{entries = {}, rules = [{rule = "0", op = 1 : i32, entries = {}}]}]} {}

// -----

// expected-error@below {{'hlotag.tags[0].rules[0].unless' must be an array, but is "x"}}
module attributes {hlotag.rules = [{name = "rule 1", text = ""}], hlotag.tags = [{entries = {}, rules = [{rule = "0", unless = "x", entries = {}}]}]} {}

// -----

// expected-error@below {{'hlotag.tags[0].rules[0].entries.k' must be a string or a bool, but is 1 : i32}}
module attributes {hlotag.rules = [{name = "rule 1", text = ""}], hlotag.tags = [{entries = {}, rules = [{rule = "0", entries = {k = 1 : i32}}]}]} {}

// -----

// expected-error@below {{'hlotag.rules' must be an array, but is "x"}}
module attributes {hlotag.rules = "x", hlotag.tags = []} {}

// -----

// expected-error@below {{'hlotag.rules[0].text' must be a string, but is missing}}
module attributes {hlotag.rules = [{name = "x"}], hlotag.tags = []} {}

// -----

module attributes {hlotag.tags = []} {
  // expected-error@unknown {{mark 'hlotag#0' has no entry}}
  func.func @bad_argument(%x: tensor<f32> loc("\01hlotag#0\01/x")) -> tensor<f32> {
    return %x : tensor<f32>
  } loc("f")
}

// -----

module attributes {hlotag.tags = [{entries = {k = "v"}}]} {
  func.func @not_a_dictionary(%x: tensor<f32>) -> tensor<f32> {
    // expected-error@unknown {{attribute 'mhlo.frontend_attributes' must be a dictionary, but is "k"}}
    %0 = stablehlo.sine %x {mhlo.frontend_attributes = "k"} : tensor<f32> loc("\01hlotag#0\01/sin")
    return %0 : tensor<f32>
  }
}
