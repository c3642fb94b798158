// SPDX-License-Identifier: Apache-2.0
//
// Which passes does hlotag have? One factory per source file.
#pragma once

#include "hlotag/pass/pass.h"

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace hlotag::passes {

std::unique_ptr<pass::Pass> createAttachPass();
std::unique_ptr<pass::Pass> createPropagatePass();
std::unique_ptr<pass::Pass> createPropagateAutodiffPass();
std::unique_ptr<pass::Pass> createResolvePass();
std::unique_ptr<pass::Pass> createStripPass();
std::unique_ptr<pass::Pass> createFinalizePass();

/// Makes one object of each pass above, in the order of their arguments.
std::vector<std::unique_ptr<pass::Pass>> makeAllPasses();

using OptionValues = std::vector<std::pair<std::string, pass::OptionValue>>;

/// Makes the pass `argument`, for example `hlotag-strip`. Throws std::invalid_argument if there is
/// no such pass or option, or if a value is of another type.
std::unique_ptr<pass::Pass> makePass(std::string_view argument, const OptionValues &options = {});

} // namespace hlotag::passes
