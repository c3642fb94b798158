// SPDX-License-Identifier: Apache-2.0
//
// Walks over an operation and everything nested in it, iterative so that no nesting depth can
// exhaust the stack.
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

/// Where a walk stands inside one operation: the block and the operation to visit next.
struct WalkFrame {
  Operation op;
  intptr_t nextRegion;
  intptr_t numRegions;
  Block block;
  Operation next;

  explicit WalkFrame(Operation op, intptr_t numRegions)
      : op(op), nextRegion(0), numRegions(numRegions) {}

  /// The operation to visit next, or null when all regions are done.
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
    // Fetched before the visit, so that the visitor may erase what it is given.
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

/// Visits `root`, then what is nested in it, each operation before its regions. `visit` takes an
/// Operation and returns nothing or a WalkResult; it may erase the operation it is given (then it
/// must return Skip) and insert operations before it. Returns false if the walk was interrupted.
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

/// Calls `visit(user, number, value)` for the operands of `op` and of what is nested in it.
template <class F> void forEachOperand(Operation op, F &&visit) {
  walk(op, [&](Operation user) {
    Operation::Operands operands = user.operands();
    for (intptr_t i = 0; i < operands.size(); ++i)
      visit(user, i, operands[i]);
  });
}

} // namespace hlotag::ir
