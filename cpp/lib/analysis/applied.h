// SPDX-License-Identifier: Apache-2.0
//
// Which operations are not computed by themselves, because a reduction, a sort or a scatter applies
// them?
#pragma once

#include "hlotag/analysis/call_graph.h"

#include <vector>

namespace hlotag::analysis {

/// Returns, by operation, whether it is in the body of such an operation, or in a function that
/// only such bodies call. Linear in the operations.
std::vector<bool> findApplied(const ir::OpList &operations, const ir::OpIds &ids,
                              const CallGraph &calls);

} // namespace hlotag::analysis
