// SPDX-License-Identifier: Apache-2.0
//
// Which primitive of JAX lowered to an operation, by its location?
#pragma once

#include "hlotag/ir/ir.h"

#include <string_view>

namespace hlotag::analysis {

/// The last element of a name such as `jit(f)/jvp(a/b)/mul`.
std::string_view primitiveOf(std::string_view name);

/// Returns true if the primitive in the name of its location lowers to `op`, so that `op` computes
/// the result of an equation.
bool isResultOfItsPrimitive(ir::Operation op);

} // namespace hlotag::analysis
