// SPDX-License-Identifier: Apache-2.0
//
// The passes that pipeline text can name.
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

/// Adds a pass; one already there under the same argument is replaced.
void registerPass(PassFactory create);

/// Adds passes by their arguments, all of them, or none if one of the arguments is taken (or given
/// twice): then returns that one, else an empty string.
std::string registerNew(std::vector<std::pair<std::string, PassFactory>> passes);

/// A new object of the pass of that name with default options, or null.
std::unique_ptr<Pass> lookup(std::string_view argument);

/// One object of each pass, sorted by argument.
std::vector<std::unique_ptr<Pass>> allPasses();

/// At most `limit` of `names` that are spelled like `word`, nearest first.
std::vector<std::string> nearest(std::string_view word, const std::vector<std::string> &names,
                                 size_t limit = 3);

} // namespace hlotag::pass
