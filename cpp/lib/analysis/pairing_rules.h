// SPDX-License-Identifier: Apache-2.0
//
// What JAX's differentiation rules emit, by the names of primitives.
#pragma once

#include <string_view>

namespace hlotag::analysis {

/// How well a backward operation of primitive `derived` fits an equation of primitive `primal`:
/// 0 (never seen) to 3 (the mark of that rule).
float transposeFit(std::string_view primal, std::string_view derived);

/// Whether the derivative of `primal` computes a value with `helper` in the forward pass, to be
/// used in the backward pass: `tanh` computes `sub`.
bool isResidualOf(std::string_view primal, std::string_view helper);

/// Whether the derivative of `primal` uses its result, like that of `exp`.
bool usesOwnResult(std::string_view primal);

} // namespace hlotag::analysis
