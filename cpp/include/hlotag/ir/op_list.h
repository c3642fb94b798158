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

private:
  std::vector<Item> items_;
};

} // namespace hlotag::ir
