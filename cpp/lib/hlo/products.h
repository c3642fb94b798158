// SPDX-License-Identifier: Apache-2.0
//
// Which contraction did XLA make of several that share an operand?
#pragma once

#include "facts.h"

#include <optional>

namespace hlotag::hlo {

/// Returns the contraction that an instruction is a slice of, reshaped or not.
std::optional<size_t> slicedContraction(const Facts &facts, size_t i);

/// If an instruction is a slice of a contraction, sets its operation to the one whose part it is,
/// by what its users want, and adds that to the contraction's, which is named after one of them.
void findPart(Facts &facts, size_t i);

} // namespace hlotag::hlo
