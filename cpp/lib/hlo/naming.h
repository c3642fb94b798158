// SPDX-License-Identifier: Apache-2.0
//
// Which operations does the name of an instruction give, and may it be believed?
#pragma once

#include "facts.h"

namespace hlotag::hlo {

/// Sets the operations of every instruction by its name, and whether that is unsure.
void readOperations(Facts &facts);

} // namespace hlotag::hlo
