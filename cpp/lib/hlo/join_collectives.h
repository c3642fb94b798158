// SPDX-License-Identifier: Apache-2.0
//
// Which operations do the collectives come from that XLA combined, moved or inserted?
#pragma once

#include "join_state.h"

namespace hlotag::hlo {

/// Returns true if an instruction may replace several collectives.
bool isCombined(const Facts &facts, size_t i);

/// Returns true if the name of a collective lists the names of all that it replaces.
bool hasAllNames(const Facts &facts, size_t i);

/// The rules: a list in the name, a piece in another fusion, and what users take.
Numbers findCombinedNames(Join &join, size_t i);
Numbers findPiece(Join &join, size_t i);
Numbers findCollective(Join &join, size_t i);

} // namespace hlotag::hlo
