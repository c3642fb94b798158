// SPDX-License-Identifier: Apache-2.0
//
// Which passes does hlotag have? One factory per source file.
#pragma once

#include "hlotag/pass/pass.h"

#include <memory>

namespace hlotag::passes {

std::unique_ptr<pass::Pass> createAttachPass();
std::unique_ptr<pass::Pass> createCompleteLoweringPass();
std::unique_ptr<pass::Pass> createPropagateAutodiffPass();
std::unique_ptr<pass::Pass> createPropagateCallsPass();
std::unique_ptr<pass::Pass> createPropagateRegionsPass();
std::unique_ptr<pass::Pass> createResolvePass();
std::unique_ptr<pass::Pass> createStripPass();
std::unique_ptr<pass::Pass> createVerifyPass();

/// Registers all passes above. May be called again.
void registerAllPasses();

} // namespace hlotag::passes
