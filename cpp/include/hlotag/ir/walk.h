// SPDX-License-Identifier: Apache-2.0
//
// How are an operation and everything nested in it visited? Without recursion, because modules
// may be nested deeper than the stack allows.
#pragma once

#include "hlotag/ir/operation.h"

#include <type_traits>
#include <utility>
#include <vector>

namespace hlotag::ir {

enum class WalkResult {
  Advance,
  Skip,     ///< do not enter this operation's regions
  Interrupt ///< end the walk
};

namespace detail {

/// The position of a walk inside one operation.
struct WalkFrame {
  Operation op;
  intptr_t nextRegion;
  intptr_t numRegions;
  Block block;
  Operation next;

  explicit WalkFrame(Operation op, intptr_t numRegions)
      : op(op), nextRegion(0), numRegions(numRegions) {}

  /// Returns the next operation to visit, or null at the end of the last region.
  Operation advance() {
    while (!next) {
      if (block)
        block = Block::next(block);
      while (!block && nextRegion < numRegions)
        block = op.regions()[nextRegion++].firstBlock();
      if (!block)
        return {};
      next = block.firstOp();
    }
    // Fetched before the visit, because the visitor may move the operation.
    return std::exchange(next, next.nextInBlock());
  }
};

template <class F> WalkResult visit(F &f, Operation op) {
  if constexpr (std::is_void_v<std::invoke_result_t<F &, Operation>>) {
    f(op);
    return WalkResult::Advance;
  } else {
    return f(op);
  }
}

} // namespace detail

/// Visits `root` and everything nested in it, each operation before its regions. `visit` takes an
/// Operation and returns nothing or a WalkResult. `visit` may insert operations before its
/// argument, and may move its argument if it then returns Skip. Returns false if interrupted.
template <class F> bool walk(Operation root, F &&visit) {
  std::vector<detail::WalkFrame> stack;
  auto enter = [&](Operation op) {
    WalkResult result = detail::visit(visit, op);
    if (result != WalkResult::Advance)
      return result != WalkResult::Interrupt;
    if (intptr_t numRegions = capi::fn().mlirOperationGetNumRegions(op.raw()))
      stack.emplace_back(op, numRegions);
    return true;
  };
  if (!enter(root))
    return false;
  while (!stack.empty()) {
    Operation op = stack.back().advance();
    if (!op)
      stack.pop_back();
    else if (!enter(op))
      return false;
  }
  return true;
}

/// Calls `visit(user, number, value)` for each operand of `op` and of the operations in its
/// regions.
template <class F> void forEachOperand(Operation op, F &&visit) {
  walk(op, [&](Operation user) {
    Operation::Operands operands = user.operands();
    for (intptr_t i = 0; i < operands.size(); ++i)
      visit(user, i, operands[i]);
  });
}

} // namespace hlotag::ir
