// SPDX-License-Identifier: Apache-2.0
//
// How deep is what a text says nested? MLIR's parser and printer recurse at each bracket, at each
// operator of an affine expression, and through aliases.
#pragma once

#include <cstddef>
#include <string_view>

namespace hlotag::ir {

/// Returns an upper bound of the depth of nested attributes, types, locations and regions in MLIR
/// text. Strings and comments do not count. Of text that MLIR cannot read, the depth may be larger.
size_t nestingDepth(std::string_view text);

/// Limit for attributes in options: no legal one is deeper, and any stack can parse this depth.
inline constexpr size_t kMaxAttributeDepth = 64;

} // namespace hlotag::ir
