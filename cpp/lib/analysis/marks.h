// SPDX-License-Identifier: Apache-2.0
//
// Which marks does a location's name have? A mark is an element that stands for a tag.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hlotag::analysis {

struct MarkedName {
  /// Indices into the module's `hlotag.tags`, or kNoTag for a backward rule, outermost first.
  std::vector<size_t> marks;
  std::string stripped; ///< the name without marks, and without the separators they needed
  std::string error;    ///< not empty if a mark is malformed
};

/// The mark of operations that a backward rule of the user's binds. It stands for no tag.
inline constexpr std::string_view kCustomMark = "\x01hlotag#custom\x01";
inline constexpr size_t kNoTag = size_t(-1);

/// Removes the marks from a name such as `jit(f)/transpose(jvp(\x01hlotag#3\x01))/mul`. Returns
/// whether the name has marks. Leaves `result` unchanged if it has none; reuse `result` to avoid
/// allocations.
bool parseMarks(std::string_view name, MarkedName &result);

} // namespace hlotag::analysis
