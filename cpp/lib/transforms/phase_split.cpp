// SPDX-License-Identifier: Apache-2.0
#include "phase_split.h"
#include "specialize.h"

#include <algorithm>
#include <vector>

namespace hlotag::transforms {

using analysis::CallGraph;

namespace {

/// Of a call: outside of backward passes; in a backward rule of the user's; derived by autodiff.
enum class Phase : uint8_t { Forward, Custom, Derived };

/// Returns the phase of each call in a function that is called in the phase `outer`.
Specializer<Phase>::KeyAt phasesOf(analysis::Provenance &provenance, bool ofCustom) {
  struct Site {
    bool isTransposed = false;
    int derivations = 0; ///< without those of the function that it is in
  };
  std::vector<Site> sites;
  for (const CallGraph::CallSite &site : provenance.calls().callSites()) {
    const analysis::Origin &origin = provenance.of(site.op);
    sites.push_back(
        {origin.transposed, origin.derivations - provenance.ofCallers(site.caller).derivations});
  }
  return [ofCustom, sites](size_t site, Phase outer) {
    if (int(outer == Phase::Derived) + sites[site].derivations > 0)
      return Phase::Derived;
    bool isCustom = ofCustom && (outer != Phase::Forward || sites[site].isTransposed);
    return isCustom ? Phase::Custom : Phase::Forward;
  };
}

} // namespace

bool splitByPhase(
    pass::PassContext &ctx, analysis::Provenance &provenance, bool ofCustom,
    const std::function<bool(ir::Operation op, ir::Operation function)> &dependsOnPhase) {
  const CallGraph &graph = provenance.calls();
  if (!graph.hasCalls())
    return false;
  Specializer<Phase> specializer(ctx, graph);
  specializer.reach(Phase::Forward, phasesOf(provenance, ofCustom));
  std::vector<bool> isDependent(graph.functions().size()); // callees included
  auto isCalleeDependent = [&](size_t site) {
    size_t callee = graph.callSites()[site].callee;
    return callee != CallGraph::kNone && isDependent[callee];
  };
  for (size_t f : graph.calleesFirst()) {
    if (!specializer.isShared(f))
      continue;
    const CallGraph::Function &function = graph.functions()[f];
    const ir::OpList::Item *op = ctx.operations().begin() + function.index;
    isDependent[f] = std::any_of(function.calls.begin(), function.calls.end(), isCalleeDependent) ||
                     std::any_of(op, op + 1 + op->numNested, [&](const ir::OpList::Item &item) {
                       return dependsOnPhase(item.op, function.op);
                     });
  }
  return specializer.write([&](size_t f) { return isDependent[f]; });
}

} // namespace hlotag::transforms
