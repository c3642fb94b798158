// SPDX-License-Identifier: Apache-2.0
//
// Which operations does a collective come from that XLA combined from several, or inserted?
#pragma once

#include "uses.h"

namespace hlotag::hlo {

/// Returns true if an instruction may replace several collectives.
bool isCombined(const Facts &facts, size_t i);

/// Returns true if the name of a collective lists the names of all that it replaces.
bool hasAllNames(const Facts &facts, size_t i);

/// Replaces those of `numbers` that only move a collective's result by the collective.
Numbers replaceByCollectives(Facts &facts, size_t i, const Numbers &numbers);

/// Returns, for each part of a collective's result, the operation whose value the users of the part
/// expect. Empty if they expect none.
Numbers findMembers(Facts &facts, Uses &uses, size_t i);

} // namespace hlotag::hlo
