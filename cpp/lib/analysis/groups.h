// SPDX-License-Identifier: Apache-2.0
//
// Which operations does XLA schedule or launch as one group, and which groups does it refuse?
#pragma once

#include "inlined_block.h"

#include <string>
#include <string_view>
#include <vector>

namespace hlotag::analysis {

inline constexpr std::string_view kSchedulingGroup = "_scheduling_group_id";
inline constexpr std::string_view kCollectiveGroup = "collective_group_key";

/// Finds groups that XLA refuses to compile. Like XLA, checks one computation at a time, with calls
/// and shard_maps inlined. Linear in the inlined operations between the first and the last member
/// in each block. Beyond `maxInlined` operations, calls are not inlined.
class Groups {
public:
  struct Conflict {
    ir::Operation op;
    std::string message;
  };

  /// Records the frontend attributes of `op`.
  void add(ir::Operation op, ir::DictionaryAttr entries, const ir::OpIds &ids);
  bool empty() const { return blocks_.empty(); }

  /// Returns all conflicts, in the order of the blocks.
  ///
  /// - A cycle: an operation and groups depend on each other. Members of one scheduling group may
  ///   depend on each other, those of a collective group may not.
  /// - An order: only some members of a scheduling group have
  ///   `keep_original_sequence_order_in_group`.
  std::vector<Conflict> conflicts(const CallGraph &graph, const ir::OpIds &ids, size_t maxInlined);
  /// Whether calls were inlined.
  bool inlinesCalls() const { return inlinesCalls_; }

private:
  struct Membership {
    ir::Attribute scheduling; ///< the value of `_scheduling_group_id`
    ir::Attribute collective; ///< the value of `collective_group_key`
    bool keepsOrder = false;
  };
  /// The operations of a block from the first to the last that the check needs.
  struct Range {
    ir::Block block;
    ir::Operation first, last;
  };
  using Ranges = std::vector<Range>;

  /// Adds `op` to the range of its block, and what XLA inlines around it to that of its own.
  static void extend(Ranges &ranges, ir::PointerMap<size_t> &known, ir::Operation op,
                     const ir::OpIds &ids);
  /// Returns whether the range of the block changed.
  static bool extendBlock(Ranges &ranges, ir::PointerMap<size_t> &known, ir::Operation op);
  bool find(const Ranges &ranges, const InlinedCalls &calls, size_t maxOps,
            std::vector<Conflict> &conflicts) const;
  void findCycles(const InlinedBlock &block, ir::Attribute Membership::*kind,
                  std::vector<Conflict> &conflicts) const;
  void checkOrder(const InlinedBlock &block, std::vector<Conflict> &conflicts) const;

  ir::PointerMap<Membership> members_; // by operation
  Ranges blocks_;
  ir::PointerMap<size_t> indices_; // in `blocks_`, by block
  bool inlinesCalls_ = true;
};

} // namespace hlotag::analysis
