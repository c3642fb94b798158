// SPDX-License-Identifier: Apache-2.0
#include "applied.h"

#include <algorithm>

namespace hlotag::analysis {

std::vector<bool> findApplied(const ir::OpList &operations, const ir::OpIds &ids,
                              const CallGraph &calls) {
  std::vector<bool> isApplied(operations.size());
  size_t end = 0; // of the body
  for (size_t i = 0; i < operations.size(); ++i) {
    isApplied[i] = i < end;
    if (ids.hasBody(operations[i]))
      end = std::max(end, operations.after(i));
  }
  std::vector<size_t> order = calls.calleesFirst();
  for (auto f = order.rbegin(); f != order.rend(); ++f) { // Callers first.
    const CallGraph::Function &function = calls.functions()[*f];
    auto isAppliedAt = [&](size_t site) {
      const CallGraph::CallSite &call = calls.callSites()[site];
      return isApplied[calls.functions()[call.caller].index + call.position];
    };
    if (!function.isRoot() &&
        std::all_of(function.callers.begin(), function.callers.end(), isAppliedAt))
      std::fill_n(isApplied.begin() + ptrdiff_t(function.index),
                  1 + operations[function.index].numNested, true);
  }
  return isApplied;
}

} // namespace hlotag::analysis
