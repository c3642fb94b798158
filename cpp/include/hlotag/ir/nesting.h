// SPDX-License-Identifier: Apache-2.0
//
// How deep are the brackets of a text nested? MLIR's parser recurses at each.
#pragma once

#include <cstddef>
#include <string_view>

namespace hlotag::ir {

/// Returns the depth of nested brackets in MLIR text, not counting strings and comments. Of text
/// that MLIR cannot read, the depth may be too large.
size_t nestingDepth(std::string_view text);

/// Limit for attributes in options: no legal one is deeper, and any stack can parse this depth.
inline constexpr size_t kMaxAttributeDepth = 64;

} // namespace hlotag::ir
