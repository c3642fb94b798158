// SPDX-License-Identifier: Apache-2.0
//
// Which operation does an instruction come from that only moves a value, if its name cannot tell?
#pragma once

#include "facts.h"

namespace hlotag::hlo {

/// Returns the operations of a move that has a name. The instruction's tags decide between the
/// name, the operations that its users expect, and their helpers.
Ids moved(Facts &facts, size_t i);

/// Joins relabelled arguments, which have no name, by their tags.
void adoptNameless(Facts &facts);

} // namespace hlotag::hlo
