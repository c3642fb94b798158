// SPDX-License-Identifier: Apache-2.0
//
// Other names in the locations of a module.
#pragma once

#include "hlotag/pass/pass.h"

#include <functional>
#include <string>
#include <string_view>

namespace hlotag::transforms {

/// Replaces each name in the locations of operations and of block arguments by `rename(name)`,
/// which is called once for each distinct location.
void renameLocations(pass::PassContext &ctx,
                     const std::function<std::string(std::string_view)> &rename);

} // namespace hlotag::transforms
