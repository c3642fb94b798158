// SPDX-License-Identifier: Apache-2.0
//
// How are the names in all locations of a module replaced?
#pragma once

#include "hlotag/pass/pass.h"

#include <functional>
#include <string>
#include <string_view>

namespace hlotag::transforms {

/// Replaces each name in the locations of operations and block arguments by `rename(name)`. Calls
/// `rename` once for each distinct location.
void renameLocations(pass::PassContext &ctx,
                     const std::function<std::string(std::string_view)> &rename);

} // namespace hlotag::transforms
