// SPDX-License-Identifier: Apache-2.0
//
// Which operations of the program did an HLO instruction come from? The numbers in names tell;
// where they fail, data flow does.
//
// Names fail in few places. An instruction that absorbs another one gets its name (a dot that folds
// a transpose). Constants and expansions have no name. Of two equal instructions XLA keeps one.
#pragma once

#include "hlotag/hlo/program.h"

#include <vector>

namespace hlotag::hlo {

/// Reads the numbers in the names of all instructions.
std::vector<NumberedName> readNames(const Module &module, const Program &program);

/// Moves calls to the callers. XLA inlines all calls: an instruction that is named after one is in
/// its callee, and has no number itself.
void setCallsApart(NumberedName &named, const Program &program);

/// Returns the numbers of each instruction's operations: its own first, then those that XLA merged
/// into it. Empty for instructions without an operation: parameters, tuples, copies. Throws
/// `std::out_of_range` if the program has no operation of a number.
std::vector<Ids> join(const Module &module, Kinds &kinds, const Program &program,
                      const std::vector<NumberedName> &names);

/// Adds to each instruction the operations that XLA removed because they computed the same.
void addEqual(std::vector<Ids> &ids, const Program &program);

} // namespace hlotag::hlo
