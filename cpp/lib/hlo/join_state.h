// SPDX-License-Identifier: Apache-2.0
//
// What do the rules of a join know and remember?
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

} // namespace hlotag::hlo
