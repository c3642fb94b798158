// SPDX-License-Identifier: Apache-2.0
//
// Which functions need a copy for the backward pass?
#pragma once

#include "hlotag/analysis/provenance.h"
#include "hlotag/pass/pass.h"

#include <functional>

namespace hlotag::transforms {

/// Copies functions for the backward pass: those that both phases call, and that contain or reach
/// an operation with `dependsOnPhase`. One copy per function and phase. `ofCustom` says whether the
/// user's backward rules are a phase of their own, and not forward. Returns whether there are any
/// copies; `provenance` is then out of date.
bool splitByPhase(
    pass::PassContext &ctx, analysis::Provenance &provenance, bool ofCustom,
    const std::function<bool(ir::Operation op, ir::Operation function)> &dependsOnPhase);

} // namespace hlotag::transforms
