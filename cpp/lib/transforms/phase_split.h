// SPDX-License-Identifier: Apache-2.0
//
// Functions that the forward and the backward pass share.
#pragma once

#include "hlotag/analysis/provenance.h"
#include "hlotag/pass/pass.h"

#include <functional>

namespace hlotag::transforms {

/// Gives the backward pass a copy of each function that both phases call and in which, or in what
/// it calls, an operation is to have other entries there: `dependsOnPhase` says which those are.
/// One copy a function. Returns whether there are any; `provenance` is then out of date.
bool splitByPhase(pass::PassContext &ctx, analysis::Provenance &provenance,
                  const std::function<bool(ir::Operation)> &dependsOnPhase);

} // namespace hlotag::transforms
