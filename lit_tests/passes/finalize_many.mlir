// SPDX-License-Identifier: Apache-2.0
// Ten warnings and ten errors are reported, and how many more there are; an error counts however many came before.
// RUN: not hlotag-opt %s --hlotag-finalize="on-mistake=warning" 2>&1 | FileCheck %s --check-prefix=WARN
// RUN: not hlotag-opt %s --hlotag-finalize 2>&1 | FileCheck %s --check-prefix=ERROR
// WARN-COUNT-10: warning: 'stablehlo.sine' key 'k'
// WARN-NOT: warning: 'stablehlo
// WARN-DAG: error: 'stablehlo.cosine' key 'hlotag.grad.k' in 'mhlo.frontend_attributes': the prefix 'hlotag.' is reserved
// WARN-DAG: warning: and 1 more warnings about entries
// ERROR-COUNT-10: error: 'stablehlo.sine' key 'k'
// ERROR-NOT: error: 'stablehlo
// ERROR: error: and 2 more errors in entries
func.func @many(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {k = 0 : i32}} : tensor<f32>
  %1 = stablehlo.sine %0 {mhlo.frontend_attributes = {k = 1 : i32}} : tensor<f32>
  %2 = stablehlo.sine %1 {mhlo.frontend_attributes = {k = 2 : i32}} : tensor<f32>
  %3 = stablehlo.sine %2 {mhlo.frontend_attributes = {k = 3 : i32}} : tensor<f32>
  %4 = stablehlo.sine %3 {mhlo.frontend_attributes = {k = 4 : i32}} : tensor<f32>
  %5 = stablehlo.sine %4 {mhlo.frontend_attributes = {k = 5 : i32}} : tensor<f32>
  %6 = stablehlo.sine %5 {mhlo.frontend_attributes = {k = 6 : i32}} : tensor<f32>
  %7 = stablehlo.sine %6 {mhlo.frontend_attributes = {k = 7 : i32}} : tensor<f32>
  %8 = stablehlo.sine %7 {mhlo.frontend_attributes = {k = 8 : i32}} : tensor<f32>
  %9 = stablehlo.sine %8 {mhlo.frontend_attributes = {k = 9 : i32}} : tensor<f32>
  %10 = stablehlo.sine %9 {mhlo.frontend_attributes = {k = 10 : i32}} : tensor<f32>
  %11 = stablehlo.cosine %10 {mhlo.frontend_attributes = {hlotag.grad.k = "v"}} : tensor<f32>
  return %11 : tensor<f32>
}
