// SPDX-License-Identifier: Apache-2.0
//
// Which operations does a module have, by index? An array is faster than MLIR's linked lists.
#pragma once

#include "hlotag/ir/operation.h"

#include <cstdint>
#include <vector>

namespace hlotag::ir {

/// The operations that `walk` visits, in its order. Valid until one is inserted or moved.
class OpList {
public:
  struct Entry {
    Operation op;
    Identifier name;
    uint32_t numNested; ///< number of operations in its regions, at any depth; they follow
    bool hasRegions;
  };

  explicit OpList(Operation root);

  size_t size() const { return entries_.size(); }
  const Entry &operator[](size_t index) const { return entries_[index]; }
  const Entry *begin() const { return entries_.data(); }
  const Entry *end() const { return begin() + size(); }
  /// The index of the first operation after those in the regions of `index`.
  size_t after(size_t index) const { return index + 1 + entries_[index].numNested; }

private:
  std::vector<Entry> entries_;
};

} // namespace hlotag::ir
