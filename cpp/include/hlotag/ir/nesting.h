// SPDX-License-Identifier: Apache-2.0
//
// MLIR's parser recurses at each bracket, and the stack has an end.
#pragma once

#include <cstddef>
#include <string_view>

namespace hlotag::ir {

/// How deep the brackets of MLIR text are nested; those in strings and comments do not count.
size_t nestingDepth(std::string_view text);

/// Deeper than any attribute that an option takes, and shallow enough for every stack.
inline constexpr size_t kMaxAttributeDepth = 64;

} // namespace hlotag::ir
