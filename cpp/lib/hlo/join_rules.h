// SPDX-License-Identifier: Apache-2.0
//
// Which rules join an instruction to its operations, and in which order?
#pragma once

#include "facts.h"

#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace hlotag::hlo {

/// The state of a join, for rules.
struct Join {
  Join(const Module &module, const Program &program, const std::vector<NumberedName> &names,
       std::vector<size_t> heaviest);

  Facts facts;
  Uses uses;
  const std::vector<size_t> heaviest;             ///< of `findHeaviest`
  const std::vector<std::vector<size_t>> callers; ///< by computation: whose body it is
  /// By opcode and channel, the last piece of a nameless collective.
  std::map<std::pair<size_t, int64_t>, size_t> pieces;
  /// By size of the result, the products that no instruction is known to compute.
  std::optional<std::map<uint64_t, Numbers>> uncomputed;
  std::string_view without; ///< the name of a rule that finds nothing
};

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
