// SPDX-License-Identifier: Apache-2.0
#include "applied.h"

#include "hlotag/analysis/call_graph.h"

#include <algorithm>

namespace hlotag::analysis {

std::vector<bool> findApplied(const ir::OpList &operations, const ir::OpIds &ids) {
  std::vector<bool> isApplied(operations.size());
  bool anyCalls = false; // in bodies
  size_t end = 0;        // of the body
  for (size_t i = 0; i < operations.size(); ++i) {
    isApplied[i] = i < end;
    if (ids.hasBody(operations[i]))
      end = std::max(end, operations.after(i));
    anyCalls |= isApplied[i] && ids.calleesOf(operations[i].name);
  }
  if (!anyCalls)
    return isApplied;
  CallGraph graph(operations, ids);
  std::vector<size_t> order = graph.calleesFirst();
  for (auto f = order.rbegin(); f != order.rend(); ++f) { // Callers first.
    const CallGraph::Function &function = graph.functions()[*f];
    auto isAppliedAt = [&](size_t site) {
      const CallGraph::CallSite &call = graph.callSites()[site];
      return isApplied[graph.functions()[call.caller].index + call.position];
    };
    if (!function.isRoot() &&
        std::all_of(function.callers.begin(), function.callers.end(), isAppliedAt))
      std::fill_n(isApplied.begin() + ptrdiff_t(function.index),
                  1 + operations[function.index].numNested, true);
  }
  return isApplied;
}

} // namespace hlotag::analysis
