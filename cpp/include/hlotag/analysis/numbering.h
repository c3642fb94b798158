// SPDX-License-Identifier: Apache-2.0
//
// Numbers in the names of operations, by which what XLA makes of them can be traced back.
#pragma once

#include "hlotag/ir/ir.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hlotag::analysis {

/// Puts the numbers of the operations in `operations`, counted from 0 after the first, which is the
/// module, in front of their location names: `\x01token:number\x01/`. A path component in front of
/// the others, since XLA names instructions after the last one; the control character keeps it
/// apart from names of users. What has no name has no number either.
///
/// XLA may merge an equation's operation with its operand: where their locations are equal, so must
/// their names be for its metadata to stay as they were, so that operand gets its user's number.
/// These are returned: (number of the operand, of the user). With `every` there are none.
std::vector<std::pair<size_t, size_t>>
numberNames(const ir::OpList &operations, const ir::OpIds &ids, std::string_view token, bool every);

/// What the numbers in a name that XLA gave an instruction say. It joins the names of operations
/// that it merges by `;`, those of collectives that it combines as `prefix/(a:b)`, and writes
/// `call/callee` when it inlines.
struct NumberedName {
  std::vector<int64_t> numbers; ///< One for each operation that was merged, each once.
  std::vector<int64_t> callers; ///< Of calls that were inlined.
  bool isCombined = false;      ///< Whether the operations are collectives that XLA combined.
};

/// Reads the numbers with that token; `std::out_of_range` where one is none of an operation.
NumberedName readNumbers(std::string_view name, std::string_view token);

/// `name` as XLA would have written it without the numbers with that token. `isOnePlace` says
/// whether the operations that were merged have one location.
std::string withoutNumbers(std::string_view name, std::string_view token, bool isOnePlace);

} // namespace hlotag::analysis
