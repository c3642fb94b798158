// SPDX-License-Identifier: Apache-2.0
//
// Which operation does a primitive of JAX lower to, as far as names tell?
#pragma once

#include "hlotag/ir/ir.h"

#include <string_view>

namespace hlotag::analysis {

/// Whether a primitive of JAX, the last element of a location's name, lowers to an operation of
/// that kind, e.g. `mul` to `stablehlo.multiply`.
bool isLoweredTo(std::string_view primitive, std::string_view opName);

/// The last element of a name such as `jit(f)/jvp(a/b)/mul`.
std::string_view primitiveOf(std::string_view name);

/// Whether `op` is what the primitive of its location lowers to, and so an equation's result.
bool isResultOfItsPrimitive(ir::Operation op);

} // namespace hlotag::analysis
