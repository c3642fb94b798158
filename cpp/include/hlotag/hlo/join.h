// SPDX-License-Identifier: Apache-2.0
//
// Which operations of the program an HLO instruction came from: by the numbers in names, and by
// data flow where they fail.
//
// Names fail in few places. XLA gives an instruction that absorbs another the other's name (a dot
// that folds a transpose), makes some without any (constants, expansions), and keeps one of two
// equal ones.
#pragma once

#include "hlotag/hlo/program.h"

#include <vector>

namespace hlotag::hlo {

/// The numbers in the names of all instructions.
std::vector<analysis::NumberedName> readNames(const Module &module, const Program &program);

/// For each instruction, the numbers of its operations: its own first, then those that XLA merged
/// into it. None for what XLA made without one: parameters, tuples, copies. Throws
/// `std::out_of_range` where a number is none of the program's.
std::vector<Ids> join(const Module &module, Kinds &kinds, const Program &program,
                      const std::vector<analysis::NumberedName> &names);

/// Adds the operations that are gone, since XLA found that another computes the same.
void addEqual(std::vector<Ids> &ids, const Program &program);

} // namespace hlotag::hlo
