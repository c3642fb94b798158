// SPDX-License-Identifier: Apache-2.0
//
// Groups of operations that XLA is to schedule or to launch as one.
#pragma once

#include "inlined_block.h"

#include <string>
#include <string_view>
#include <vector>

namespace hlotag::analysis {

inline constexpr std::string_view kSchedulingGroup = "_scheduling_group_id";
inline constexpr std::string_view kCollectiveGroup = "collective_group_key";
inline constexpr std::string_view kGroupOrder = "keep_original_sequence_order_in_group";

/// The group that a value of `_scheduling_group_id` names: `4` of `4:1`; empty if none, as for
/// `noop` and `:1`.
std::string_view groupOf(std::string_view value);

/// Finds groups that XLA refuses to compile. It looks at one computation at a time, after it has
/// inlined calls, so this does, too. Linear in the operations that are then between the first and
/// the last member in a block; beyond a million, calls are not looked into.
class Groups {
public:
  struct Conflict {
    ir::Operation op;
    std::string message;
  };

  /// `op` has these frontend attributes.
  void add(ir::Operation op, ir::DictionaryAttr entries);
  bool empty() const { return blocks_.empty(); }

  /// What is wrong, in the order of the blocks.
  ///
  /// - A gap: an operation outside of a scheduling group depends on it, and the group on the
  ///   operation. In a group of collectives, one that depends on another.
  /// - A cycle: groups depend on each other, also through other operations.
  /// - An order that only some members of a scheduling group ask for.
  std::vector<Conflict> conflicts(const CallGraph &graph, const ir::OpIds &ids,
                                  const ir::TagWriter &tags) const;

private:
  enum class Kind { Scheduling, Collective };
  struct Membership {
    ir::Attribute scheduling; ///< the value of `_scheduling_group_id`
    ir::Attribute collective; ///< that of `collective_group_key`
    bool keepsOrder = false;
    ir::Attribute of(Kind kind) const { return kind == Kind::Scheduling ? scheduling : collective; }
  };
  /// From the first to the last operation of a block that matters.
  struct Range {
    ir::Block block;
    ir::Operation first, last;
  };
  class Graph;

  static void extend(std::vector<Range> &ranges, ir::PointerMap<size_t> &known, ir::Operation op);
  bool find(const std::vector<Range> &ranges, const InlinedCalls &calls, size_t maxOps,
            std::vector<Conflict> &conflicts) const;
  void checkOrder(const InlinedBlock &block, std::vector<Conflict> &conflicts) const;

  ir::PointerMap<Membership> members_; // by operation
  std::vector<Range> blocks_;
  ir::PointerMap<size_t> places_; // of blocks in `blocks_`
};

} // namespace hlotag::analysis
