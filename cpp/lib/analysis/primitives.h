// SPDX-License-Identifier: Apache-2.0
//
// Which operation does a primitive of JAX lower to, by their names?
#pragma once

#include "hlotag/ir/ir.h"

#include <string_view>

namespace hlotag::analysis {

/// Returns true if a primitive of JAX lowers to operations called `opName`, as `mul` does to
/// `stablehlo.multiply`.
bool isLoweredTo(std::string_view primitive, std::string_view opName);

/// The last element of a name such as `jit(f)/jvp(a/b)/mul`.
std::string_view primitiveOf(std::string_view name);

/// Returns true if the primitive in the name of its location lowers to `op`, so that `op` computes
/// the result of an equation.
bool isResultOfItsPrimitive(ir::Operation op);

} // namespace hlotag::analysis
