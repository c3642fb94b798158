// SPDX-License-Identifier: Apache-2.0
//
// Which operation is a slice of a contraction, after XLA merged contractions that share an operand?
#pragma once

#include "facts.h"

#include <optional>

namespace hlotag::hlo {

/// Returns the contraction that an instruction slices, directly or after reshapes.
std::optional<size_t> slicedContraction(const Facts &facts, size_t i);

/// If an instruction slices a contraction, and its users expect the value of one contraction of the
/// program, joins both instructions to that. XLA names the merged contraction after one only.
void findPart(Facts &facts, size_t i);

} // namespace hlotag::hlo
