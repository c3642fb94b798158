// SPDX-License-Identifier: Apache-2.0
//
// How do numbers in names lead from an HLO instruction back to its operations?
#pragma once

#include "hlotag/ir/ir.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hlotag::hlo {

/// Writes the number of each operation in front of its location name: `\x01token:number\x01/`.
/// `operations[0]` is the module; numbers count from 0 after it. The number is the first path
/// component, because XLA names instructions after the last one; users' names have no control
/// character. Operations without a name get no number.
///
/// XLA may merge a broadcast with its user of the same equation, and writes their name once if it
/// is equal. So that it stays equal, such an operand gets its user's number. Returns these pairs:
/// (number of the operand, number of the user). With `every`, each operation gets its own number.
std::vector<std::pair<size_t, size_t>> numberNames(ir::Rewriter &rewriter,
                                                   const ir::OpList &operations,
                                                   const ir::OpIds &ids, std::string_view token,
                                                   bool every);

/// The numbers in the name of an instruction. XLA joins names of merged operations by `;`, names of
/// combined collectives as `prefix/(a:b)`, and writes `call/callee` for inlined functions.
struct NumberedName {
  std::vector<int64_t> numbers; ///< of merged operations, without repetition
  std::vector<int64_t> callers; ///< of inlined calls
  bool isCombined = false;      ///< whether XLA combined collectives
};

/// Reads the numbers with `token`. Throws `std::out_of_range` if a number is too large.
NumberedName readNumbers(std::string_view name, std::string_view token);

/// Returns `name` as XLA writes it for a program without numbers. `isOnePlace` says whether the
/// merged operations have one location.
std::string removeNumbers(std::string_view name, std::string_view token, bool isOnePlace);

} // namespace hlotag::hlo
