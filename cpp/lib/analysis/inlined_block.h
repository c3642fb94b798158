// SPDX-License-Identifier: Apache-2.0
//
// Which operations does a block have once XLA has inlined calls?
#pragma once

#include "hlotag/analysis/call_graph.h"

#include <cstdint>
#include <vector>

namespace hlotag::analysis {

/// The calls that XLA replaces by their callees' bodies: `func.call` and composites, unless they
/// have `inlineable = "false"`.
class InlinedCalls {
public:
  InlinedCalls() = default;
  InlinedCalls(const CallGraph &graph, const ir::OpIds &ids);

  /// Returns the body that replaces `call`, or null if XLA keeps the call.
  ir::Block bodyOf(ir::Operation call) const;
  /// Returns whether `block` is the body of a function that only inlined calls use.
  bool isInlinedOnly(ir::Block block) const { return inlinedOnly_.find(block.opaque()); }

private:
  ir::PointerMap<ir::Block> bodies_; // by call
  ir::PointerMap<bool> inlinedOnly_; // by block
};

/// A range of a block's operations with calls inlined, and the uses among them.
class InlinedBlock {
public:
  using Index = uint32_t;

  InlinedBlock(ir::Operation first, ir::Operation last, const InlinedCalls &calls, size_t maxOps);

  /// Returns false if there are more than `maxOps` operations; the others are missing then.
  bool isComplete() const { return isComplete_; }

  /// The operations. An inlined operation is in the list once for each call.
  const std::vector<ir::Operation> &ops() const { return ops_; }
  /// The operations that compute the operands of an operation and of those nested in it. All
  /// precede it.
  const std::vector<Index> &uses(Index op) const { return uses_[op]; }

private:
  struct Frame;
  void add(Frame &frame, ir::Operation op);

  std::vector<ir::Operation> ops_;
  std::vector<std::vector<Index>> uses_;
  bool isComplete_ = true;
};

} // namespace hlotag::analysis
