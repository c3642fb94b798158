// SPDX-License-Identifier: Apache-2.0
#include "hlotag/ir/op_list.h"

#include <utility>

namespace hlotag::ir {

namespace {

/// An operation whose regions are being read.
struct Open {
  size_t index; ///< in the list
  Operation op;
  intptr_t numRegions, nextRegion = 0;
  Block block = {};
  Operation next = {};

  /// Returns the next operation in the regions; null at the end of the last one.
  Operation advance() {
    while (!next) {
      if (block)
        block = block.nextInRegion();
      while (!block && nextRegion < numRegions)
        block = op.regions()[nextRegion++].firstBlock();
      if (!block)
        return {};
      next = block.firstOp();
    }
    return std::exchange(next, next.nextInBlock());
  }
};

} // namespace

OpList::OpList(Operation root) {
  std::vector<Open> open;
  auto enter = [&](Operation op) {
    intptr_t numRegions = op.regions().size();
    if (numRegions)
      open.push_back({items_.size(), op, numRegions});
    items_.push_back({op, op.name(), 0, numRegions != 0});
  };
  enter(root);
  while (!open.empty()) {
    if (Operation op = open.back().advance()) {
      enter(op);
      continue;
    }
    size_t index = open.back().index;
    items_[index].numNested = uint32_t(items_.size() - index - 1);
    open.pop_back();
  }
}

} // namespace hlotag::ir
