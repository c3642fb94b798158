// SPDX-License-Identifier: Apache-2.0
//
// A block as XLA has it once it has inlined calls.
#pragma once

#include "hlotag/analysis/call_graph.h"

#include <cstdint>
#include <vector>

namespace hlotag::analysis {

/// The calls that XLA replaces by the body of what they call: those of `func.call` and composites,
/// unless they say `inlineable = "false"`.
class InlinedCalls {
public:
  InlinedCalls() = default;
  InlinedCalls(const CallGraph &graph, const ir::OpIds &ids, const ir::TagWriter &tags);

  /// The body that takes the place of `call`; null if it stays.
  ir::Block bodyOf(ir::Operation call) const;
  /// Whether a block is the body of a function that is there for inlined calls only.
  bool isInlinedOnly(ir::Block block) const { return inlinedOnly_.find(block.opaque()); }

private:
  ir::PointerMap<ir::Block> bodies_; // by call
  ir::PointerMap<bool> inlinedOnly_; // by block
};

/// The operations from one of a block to a later one, calls inlined, and what each uses.
class InlinedBlock {
public:
  using Place = uint32_t;
  static constexpr Place kNone = ~Place(0);

  InlinedBlock(ir::Operation first, ir::Operation last, const InlinedCalls &calls, size_t maxOps);

  /// Whether there were no more than `maxOps` operations. If there were, this is not all of them.
  bool isComplete() const { return isComplete_; }

  /// By place. An operation has one for each time that it is inlined.
  const std::vector<ir::Operation> &ops() const { return ops_; }
  /// Calls `visit` with the places that `op` and what is nested in it use; they are all before it.
  template <class F> void forEachUse(Place op, F &&visit) const {
    for (size_t i = op == 0 ? 0 : endOfUses_[op - 1]; i < endOfUses_[op]; ++i)
      visit(uses_[i]);
  }

private:
  struct Frame;
  void add(Frame &frame, ir::Operation op);

  std::vector<ir::Operation> ops_;
  std::vector<size_t> endOfUses_; // by place
  std::vector<Place> uses_;
  bool isComplete_ = true;
};

} // namespace hlotag::analysis
