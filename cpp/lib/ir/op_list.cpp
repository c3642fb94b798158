// SPDX-License-Identifier: Apache-2.0
#include "hlotag/ir/op_list.h"
#include "hlotag/ir/walk.h"

namespace hlotag::ir {

OpList::OpList(Operation root) {
  struct Open {
    size_t index;
    detail::WalkFrame frame;
    Open(size_t index, Operation op, intptr_t numRegions) : index(index), frame(op, numRegions) {}
  };
  std::vector<Open> open;
  auto enter = [&](Operation op) {
    intptr_t numRegions = capi::fn().mlirOperationGetNumRegions(op.raw());
    if (numRegions)
      open.emplace_back(items_.size(), op, numRegions);
    items_.push_back({op, op.name(), 0, numRegions != 0});
  };
  enter(root);
  while (!open.empty()) {
    if (Operation op = open.back().frame.advance()) {
      enter(op);
      continue;
    }
    size_t index = open.back().index;
    items_[index].numNested = uint32_t(items_.size() - index - 1);
    open.pop_back();
  }
}

} // namespace hlotag::ir
