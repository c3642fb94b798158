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
  std::vector<size_t> marks; ///< indices into the module's `hlotag.tags`, outermost first
  std::string stripped;      ///< the name without marks, and without the separators they needed
  std::string error;         ///< not empty if a mark is malformed
};

/// Removes the marks from a name such as `jit(f)/transpose(jvp(\x01hlotag#3\x01))/mul`. Returns
/// whether the name has marks. Leaves `result` unchanged if it has none; reuse `result` to avoid
/// allocations.
bool parseMarks(std::string_view name, MarkedName &result);

} // namespace hlotag::analysis
