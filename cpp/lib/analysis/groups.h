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

struct GroupConflict {
  ir::Operation op;
  std::string message;
};

/// Finds groups that XLA refuses to compile. Like XLA, checks one computation at a time, with calls
/// and shard_maps inlined. Linear in the operations of computations with a member; returns nothing
/// if calls, inlined, make more than a million.
///
/// - A cycle: an operation and groups depend on each other. Members of one scheduling group may
///   depend on each other, those of a collective group may not.
/// - An order: only some members of a scheduling group have
///   `keep_original_sequence_order_in_group`.
std::optional<std::vector<GroupConflict>>
findGroupConflicts(const ir::OpList &operations, const ir::OpIds &ids, const CallGraph &calls);

} // namespace hlotag::analysis
