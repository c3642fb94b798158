// SPDX-License-Identifier: Apache-2.0
//
// Numbers in the names of operations, by which what XLA makes of them can be traced back.
#pragma once

#include "hlotag/ir/ir.h"

#include <string_view>
#include <utility>
#include <vector>

namespace hlotag::analysis {

/// Puts the numbers of the operations in `operations`, counted from 0 after the first, which is the
/// module, in front of their location names: `\x01token:number\x01/`.
///
/// XLA may merge an equation's operation with its operand: where their locations are equal, so must
/// their names be for its metadata to stay as they were, so that operand gets its user's number.
/// These are returned: (number of the operand, of the user). With `every` there are none.
std::vector<std::pair<size_t, size_t>>
numberNames(const ir::OpList &operations, const ir::OpIds &ids, std::string_view token, bool every);

} // namespace hlotag::analysis
