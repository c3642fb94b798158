// SPDX-License-Identifier: Apache-2.0
//
// Which operations does the name of an instruction give, and is the name reliable?
#pragma once

#include "facts.h"

namespace hlotag::hlo {

/// Sets `ids` of each instruction by its name, and `isUnsure`.
void readOperations(Facts &facts);

} // namespace hlotag::hlo
