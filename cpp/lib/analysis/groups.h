// SPDX-License-Identifier: Apache-2.0
//
// Which operations does XLA schedule or launch as one group, and which groups does it refuse?
#pragma once

#include "hlotag/analysis/call_graph.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hlotag::analysis {

inline constexpr std::string_view kSchedulingGroup = "_scheduling_group_id";
inline constexpr std::string_view kCollectiveGroup = "collective_group_key";

/// Finds groups that XLA refuses to compile. Like XLA, checks one computation at a time, with calls
/// and shard_maps inlined. Linear in the operations of computations with a member.
class Groups {
public:
  struct Conflict {
    ir::Operation op;
    std::string message;
  };

  explicit Groups(const ir::OpIds &ids) : ids_(ids) {}

  /// Records the frontend attributes of `op`.
  void add(ir::Operation op, ir::DictionaryAttr entries);
  bool empty() const { return tagged_.empty(); }

  /// Returns all conflicts; nothing if calls, inlined, make more than `maxInlined` operations.
  /// Without `graph`, no call is inlined.
  ///
  /// - A cycle: an operation and groups depend on each other. Members of one scheduling group may
  ///   depend on each other, those of a collective group may not.
  /// - An order: only some members of a scheduling group have
  ///   `keep_original_sequence_order_in_group`.
  std::optional<std::vector<Conflict>> conflicts(const CallGraph *graph, size_t maxInlined) const;

private:
  struct Membership {
    ir::Attribute scheduling; ///< the value of `_scheduling_group_id`
    ir::Attribute collective; ///< the value of `collective_group_key`
    bool keepsOrder = false;
  };
  void checkOrder(const std::vector<ir::Operation> &ops, std::vector<Conflict> &conflicts) const;

  const ir::OpIds &ids_;
  ir::PointerMap<Membership> members_; // by operation
  std::vector<ir::Operation> tagged_;  // those in `members_`, in order
};

} // namespace hlotag::analysis
