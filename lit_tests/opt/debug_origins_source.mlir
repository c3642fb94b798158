// SPDX-License-Identifier: Apache-2.0
// An operation without a location is at its line of the file, or of standard input.
// RUN: hlotag-opt %s --hlotag-propagate --debug-origins | FileCheck %s -DFILE=%s
// RUN: hlotag-opt --hlotag-propagate --debug-origins < %s | FileCheck %s --check-prefix=STDIN

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f(%x) {mhlo.frontend_attributes = {k = "v"}} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: stablehlo.tanh %arg0 {hlotag.origins = {k = {from = "func.call at [[FILE]]:7:8", pass = "hlotag-propagate", step = "in the function it calls"}}, mhlo.frontend_attributes = {k = "v"}}
  // STDIN: stablehlo.tanh %arg0 {hlotag.origins = {k = {from = "func.call at <stdin>:7:8", pass = "hlotag-propagate", step = "in the function it calls"}}, mhlo.frontend_attributes = {k = "v"}}
  %0 = stablehlo.tanh %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
