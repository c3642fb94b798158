// SPDX-License-Identifier: Apache-2.0
//
// Which operations of the program did an HLO instruction come from?
//
// Numbers in names tell; where names fail, data flow does. An instruction that absorbs another one
// gets its name (a dot that folds a transpose). Constants and expansions have no name. Of two equal
// instructions XLA keeps one.
#pragma once

#include "hlotag/hlo/program.h"

#include <string_view>
#include <vector>

namespace hlotag::hlo {

/// Reads the numbers in the names of all instructions.
std::vector<NumberedName> readNames(const Module &module, const Program &program);

/// Moves the numbers of calls from `numbers` to `callers`. XLA inlines all calls: an instruction
/// named after a call is in its callee, and has no number of its own. Throws
/// `std::invalid_argument` if the program has no operation of a number.
void setCallsApart(NumberedName &named, const Program &program);

/// Returns the numbers of each instruction's operations: its own first, then those that XLA merged
/// into it. Empty for instructions without an operation: parameters, tuples, copies. The rule named
/// `without` is left out, to measure what it finds.
std::vector<Numbers> join(const Module &module, const Program &program,
                          const std::vector<NumberedName> &names, std::string_view without = {});

/// Returns the names of the rules, in their order. The last is `kEqual`, for `addEqual`.
std::vector<std::string_view> joinRuleNames();
inline constexpr std::string_view kEqual = "equal";

/// Returns for each fusion and asynchronous pair the heaviest instruction in it; for others, and
/// where none is heavy, the instruction itself.
std::vector<size_t> findHeaviest(const Module &module);

/// Adds to each instruction the operations that XLA merged with its own because they were equal.
void addEqual(std::vector<Numbers> &ids, const Program &program);

} // namespace hlotag::hlo
