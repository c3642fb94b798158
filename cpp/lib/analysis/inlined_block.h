// SPDX-License-Identifier: Apache-2.0
//
// Which operations does a block have once XLA has inlined calls?
#pragma once

#include "hlotag/analysis/call_graph.h"

#include <cstdint>
#include <vector>

namespace hlotag::analysis {

/// The operations that XLA replaces by a body: `func.call`, composites and the
/// `sdy.manual_computation` of a shard_map, unless they have `inlineable = "false"`.
class InlinedCalls {
public:
  InlinedCalls() = default;
  InlinedCalls(const CallGraph &graph, const ir::OpIds &ids);

  /// Returns the body that replaces `op`, or null if XLA keeps it.
  ir::Block bodyOf(ir::Operation op) const;
  /// Returns whether `block` is the body of a function that only inlined calls use, or of another
  /// inlined operation.
  bool isInlinedOnly(ir::Block block) const {
    return inlinedOnly_.find(block.opaque()) || bodyOf(block.parentOp()) == block;
  }

private:
  ir::PointerMap<ir::Block> bodies_; // by call
  ir::PointerMap<bool> inlinedOnly_; // by block
  ir::Identifier manual_;            // `sdy.manual_computation`; null if nothing is inlined
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
