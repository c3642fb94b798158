// SPDX-License-Identifier: Apache-2.0
//
// Which rules join an instruction to its operations, and in which order?
#pragma once

#include "join_state.h"

#include <string_view>
#include <vector>

namespace hlotag::hlo {

/// A rule finds the operations of some instructions. In each step the first rule that finds any
/// decides; users come before operands.
struct JoinRule {
  enum class Step {
    Name,    ///< for all instructions
    Flow,    ///< for those whose name may be a neighbour's or is missing
    Computed ///< for all: what the computation decides that an instruction calls or is in
  };
  Step step;
  std::string_view name;
  std::string_view meaning; ///< which operations an instruction comes from
  std::string_view example; ///< HLO text
  Numbers (*find)(Join &join, size_t instruction);
};

const std::vector<JoinRule> &joinRules();

/// Returns true if an instruction may not compute the operation that it is named after.
bool isUnsure(Facts &facts, size_t instruction);

} // namespace hlotag::hlo
