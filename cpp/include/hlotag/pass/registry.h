// SPDX-License-Identifier: Apache-2.0
//
// Which passes can a pipeline name?
#pragma once

#include "hlotag/pass/pass.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hlotag::pass {

using PassFactory = std::function<std::unique_ptr<Pass>()>;

/// Adds a pass, or replaces the pass with the same argument.
void registerPass(PassFactory create);

/// Adds passes by their arguments. If one of the arguments is taken or repeated, adds none and
/// returns that argument; else returns an empty string.
std::string registerNew(std::vector<std::pair<std::string, PassFactory>> passes);

/// Makes the pass `argument` with default options; null if there is none.
std::unique_ptr<Pass> lookup(std::string_view argument);

/// Makes one object of each pass, sorted by argument.
std::vector<std::unique_ptr<Pass>> allPasses();

} // namespace hlotag::pass
