// SPDX-License-Identifier: Apache-2.0
#include "bodies.h"

#include <utility>

namespace hlotag::hlo {

namespace {

/// Returns the instruction that computes the value of a wrapper. Looks through copies without a
/// name, which XLA inserted.
size_t rootOf(const Facts &facts, size_t wrapper) {
  size_t root = facts.module.wrapped(wrapper);
  while (facts.kind(root).isCopied && facts[root].ids.empty())
    root = facts.module.source(facts.module.instructions[root].operands.at(0));
  return root;
}

/// Returns, by computation, the instructions whose body it is.
std::vector<std::vector<size_t>> callersOf(const Facts &facts) {
  std::vector<std::vector<size_t>> callers(facts.module.computations.size());
  for (size_t i : facts.order)
    if (!facts[i].ids.empty() && !facts.kind(i).isControl)
      for (size_t callee : facts.module.instructions[i].called)
        callers[callee].push_back(i);
  return callers;
}

void fillFrom(Facts &facts, const std::vector<size_t> &callers, size_t i) {
  Ids &ids = facts[i].ids;
  Ids found;
  facts.unique.start();
  for (size_t caller : callers) {
    if (!ids.empty()) {
      int64_t number = facts.operations.counterpart(ids[0], facts[caller].ids);
      if (number != kNone)
        facts.unique.add(found, number);
    } else if (!facts.kind(i).isXlasOwn) {
      found = facts[caller].ids;
    }
  }
  if (!found.empty())
    ids = std::move(found);
}

} // namespace

void fillWrappers(Facts &facts) {
  for (size_t i : facts.order)
    if (facts.kind(i).isWrapper)
      if (const Ids &ids = facts[rootOf(facts, i)].ids; !ids.empty())
        facts[i].ids = ids;
}

void fillRegions(Facts &facts) {
  std::vector<std::vector<size_t>> callers = callersOf(facts);
  for (size_t callee = 0; callee < callers.size(); ++callee) {
    const Module::Computation &body = facts.module.computations[callee];
    for (size_t i = body.begin; i < body.end; ++i)
      fillFrom(facts, callers[callee], i);
  }
}

} // namespace hlotag::hlo
