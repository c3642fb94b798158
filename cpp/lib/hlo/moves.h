// SPDX-License-Identifier: Apache-2.0
//
// Whose is an instruction that only moves a value, and bears a neighbour's name or none?
#pragma once

#include "facts.h"

namespace hlotag::hlo {

/// Returns the operations of an instruction with a name.
Ids moved(Facts &facts, size_t i);

/// Sets the operations of relabelled arguments, which have no name: only tags can tell whose they
/// are.
void adoptNameless(Facts &facts);

} // namespace hlotag::hlo
