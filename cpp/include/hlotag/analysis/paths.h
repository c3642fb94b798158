// SPDX-License-Identifier: Apache-2.0
//
// How are the scope paths of a module stored? As a tree: a chain of calls has a path for each
// function, and all of them as texts would take memory with the square of its length.
#pragma once

#include "hlotag/ir/flat_map.h"

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hlotag::analysis {

/// An interned path of elements: equal ids are equal paths. 0 is the empty one.
using PathId = uint32_t;

/// JAX's names of the regions of loops and branches, `while/body` and `cond/branch_1_fun`, are left
/// out.
class Paths {
public:
  /// Returns `path` with the elements of `text`, which `/` separates, at its end.
  PathId append(PathId path, std::string_view text);
  /// Returns `outer` with the elements of `inner` at its end. Linear in `inner`.
  PathId nest(PathId outer, PathId inner);
  /// Returns the longest path that both begin with. Logarithmic in their lengths.
  PathId commonPrefix(PathId a, PathId b) const;
  /// Returns `path` without its last element; the empty path for the empty one.
  PathId outer(PathId path) const { return nodes_[path].outer; }
  /// Returns the last element; empty for the empty path.
  std::string_view element(PathId path) const {
    return path ? std::string_view(elements_[nodes_[path].element]) : std::string_view();
  }
  /// Returns the elements joined by `/`.
  std::string text(PathId path) const;

private:
  /// A path without its last element, and that element.
  struct Node {
    PathId outer = 0;
    uint32_t element = 0;
    uint32_t length = 0;
    PathId shortcut = 0; ///< a path that this one begins with
  };
  PathId child(PathId path, uint32_t name);

  std::vector<Node> nodes_{Node()};
  ir::FlatMap<uint64_t, PathId> children_; // by `outer` and `element`
  std::deque<std::string> elements_;
  std::unordered_map<std::string_view, uint32_t> elementIds_;
};

} // namespace hlotag::analysis
