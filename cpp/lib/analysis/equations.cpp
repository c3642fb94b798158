// SPDX-License-Identifier: Apache-2.0
#include "equations.h"

#include <algorithm>
#include <cstddef>

namespace hlotag::analysis {

void EquationPath::append(const ir::Chain &chain, bool isDerived) {
  for (ir::Identity identity : chain) {
    if (isClosed)
      return;
    if (isCall)
      numbers.clear();
    isCall = identity.kind == ir::Identity::Call;
    isClosed = identity.kind == ir::Identity::Closed ||
               (isDerived && identity.kind == ir::Identity::Itself);
    // Where JAX traces the body of a loop anew, the loop is repeated.
    if (std::find(numbers.begin(), numbers.end(), identity.number) == numbers.end())
      numbers.push_back(identity.number);
  }
}

bool EquationPath::agreesWith(const EquationPath &other) const {
  auto shared = ptrdiff_t(std::min(numbers.size(), other.numbers.size()));
  return shared > 0 &&
         std::equal(numbers.end() - shared, numbers.end(), other.numbers.end() - shared);
}

EquationPaths::EquationPaths(const ir::Identities &identities, Provenance &provenance)
    : identities_(identities), contexts_(provenance.calls().functions().size()) {
  const CallGraph &graph = provenance.calls();
  std::vector<size_t> order = graph.calleesFirst();
  for (auto f = order.rbegin(); f != order.rend(); ++f) {
    const CallGraph::Function &function = graph.functions()[*f];
    std::vector<EquationPath> contexts;
    if (function.isRoot())
      contexts.emplace_back();
    for (size_t site : function.callers) {
      const CallGraph::CallSite &call = graph.callSites()[site];
      for (EquationPath &path :
           of(call.caller, identities.of(call.op), provenance.isTransposed(call.op)))
        if (std::find(contexts.begin(), contexts.end(), path) == contexts.end())
          contexts.push_back(std::move(path));
    }
    if (contexts.empty() || contexts.size() > kMaxContexts)
      contexts.assign(1, {});
    contexts_[*f] = std::move(contexts);
  }
}

std::vector<EquationPath> EquationPaths::of(size_t function, ir::Identities::Id identity,
                                            bool isDerived) const {
  std::vector<EquationPath> paths;
  for (EquationPath path : contexts_[function]) {
    path.append(identities_.chain(identity), isDerived);
    if (std::find(paths.begin(), paths.end(), path) == paths.end())
      paths.push_back(std::move(path));
  }
  return paths;
}

} // namespace hlotag::analysis
