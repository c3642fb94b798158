// SPDX-License-Identifier: Apache-2.0
// Where entries come from that several operations agree on.
// RUN: hlotag-opt %S/../passes/propagate_autodiff_agreement.mlir --hlotag-propagate-autodiff --split-input-file --debug-origins | FileCheck %S/../passes/propagate_autodiff_agreement.mlir --check-prefix=ORIGINS
