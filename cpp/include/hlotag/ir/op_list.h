// SPDX-License-Identifier: Apache-2.0
//
// How are an operation and everything nested in it visited? As a list: an array is faster than
// MLIR's linked lists, and modules may be nested deeper than the stack allows.
#pragma once

#include "hlotag/ir/operation.h"

#include <cstdint>
#include <vector>

namespace hlotag::ir {

/// An operation and those in its regions, each before its own. Valid until one is inserted or
/// moved.
class OpList {
public:
  struct Item {
    Operation op;
    Identifier name;
    uint32_t numNested; ///< number of operations in its regions, at any depth; they follow
    bool hasRegions;
  };

  explicit OpList(Operation root);

  size_t size() const { return items_.size(); }
  const Item &operator[](size_t index) const { return items_[index]; }
  const Item *begin() const { return items_.data(); }
  const Item *end() const { return begin() + size(); }
  /// The index of the first operation after those in the regions of `index`.
  size_t after(size_t index) const { return index + 1 + items_[index].numNested; }
  /// The index of the next operation, not in a region of `index` if that is called `skipped`.
  size_t next(size_t index, Identifier skipped) const {
    return items_[index].name == skipped ? after(index) : index + 1;
  }

private:
  std::vector<Item> items_;
};

} // namespace hlotag::ir
