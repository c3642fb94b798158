// SPDX-License-Identifier: Apache-2.0
//
// Groups of operations that XLA's latency-hiding scheduler is to schedule as one.
#pragma once

#include "hlotag/ir/ir.h"

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hlotag::analysis {

inline constexpr std::string_view kSchedulingGroup = "_scheduling_group_id";
inline constexpr std::string_view kGroupOrder = "keep_original_sequence_order_in_group";

/// The group that a value of `_scheduling_group_id` names: `4` of `4:1`; empty if none, as for
/// `noop` and `:1`.
std::string_view groupOf(std::string_view value);

/// Finds groups that no schedule can satisfy, which are compile errors of XLA. It looks at one
/// computation at a time, and so does this, at one block. Linear in the operations from the first
/// member in a block to the last.
class SchedulingGroups {
public:
  struct Conflict {
    ir::Operation op;
    std::string message;
  };

  /// `op` has these frontend attributes. To be called in the order of the operations.
  void add(ir::Operation op, ir::DictionaryAttr entries);

  /// What is wrong, in the order of the blocks.
  ///
  /// - A gap: an operation outside of a group depends on it, and the group on the operation.
  /// - A cycle: groups depend on each other, also through other operations.
  /// - An order that only some members of a group ask for.
  std::vector<Conflict> conflicts() const;

private:
  struct Member {
    ir::Operation op;
    ir::Attribute group; ///< the value of `_scheduling_group_id`
    bool keepsOrder;
  };
  struct Members {
    ir::Block block;
    std::vector<Member> members;
  };

  class Graph;
  static void checkOrder(const Members &block, std::vector<Conflict> &conflicts);

  std::vector<Members> blocks_;
  std::unordered_map<const void *, size_t> known_; // place of a block
};

} // namespace hlotag::analysis
