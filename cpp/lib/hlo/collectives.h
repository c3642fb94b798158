// SPDX-License-Identifier: Apache-2.0
//
// Which operations does a collective stand for that XLA combined of several, or inserted?
#pragma once

#include "uses.h"

namespace hlotag::hlo {

/// Whether an instruction may stand for several collectives.
bool isCombined(const Facts &facts, size_t i);

/// Whether the name of a combined collective has those of all.
bool hasAllNames(const Facts &facts, size_t i);

/// Returns what the numbers in the names of collectives stand for.
Ids members(Facts &facts, size_t i, const Ids &numbers);

/// Returns the operations of a collective: of each part of its result, what the users of the part
/// take it for. Empty if they take it for nothing.
Ids combined(Facts &facts, Uses &uses, size_t i);

} // namespace hlotag::hlo
