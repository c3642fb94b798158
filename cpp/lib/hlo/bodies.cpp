// SPDX-License-Identifier: Apache-2.0
#include "bodies.h"

#include <optional>
#include <utility>

namespace hlotag::hlo {

namespace {

/// Returns the instruction that computes the value of a wrapper. Looks through copies without a
/// name, which XLA inserted.
size_t rootOf(const Facts &facts, size_t wrapper) {
  size_t root = facts.module.wrapped(wrapper);
  while (facts.kind(root).isCopied && facts[root].ids.empty())
    root = facts.module.source(elementAt(facts.module.instructions[root].operands, 0));
  return root;
}

/// How much an instruction does, compared to others: products most, then all other heavy work, by
/// size of the result.
std::pair<int, uint64_t> weigh(const Module &module, size_t i) {
  const Kinds::Kind &kind = module.kind(i);
  return {!kind.isHeavy                ? 0
          : kind.heavy == kContraction ? 2
                                       : 1,
          numElements(module.dimensions(i))};
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

std::vector<size_t> findHeaviest(const Module &module) {
  std::vector<size_t> heaviest(module.instructions.size());
  std::vector<size_t> order = module.usersFirst();
  std::vector<std::optional<size_t>> inBody(module.computations.size());
  // Callees come before callers, and operands before users.
  for (auto i = order.rbegin(); i != order.rend(); ++i) {
    const Module::Instruction &instruction = module.instructions[*i];
    const Kinds::Kind &kind = module.kind(*i);
    bool isDone = kind.isDone && !instruction.operands.empty();
    heaviest[*i] = isDone ? heaviest[instruction.operands[0]] : *i;
    if (kind.isFusion || kind.isAsyncStart)
      heaviest[*i] = inBody[elementAt(instruction.called, 0)].value_or(*i);
    if (!module.kind(heaviest[*i]).isHeavy)
      continue;
    std::optional<size_t> &found = inBody[instruction.computation];
    if (!found || weigh(module, heaviest[*i]) > weigh(module, *found))
      found = heaviest[*i];
  }
  return heaviest;
}

void fillWrappers(Facts &facts) {
  std::vector<size_t> heaviest = findHeaviest(facts.module);
  for (size_t i : facts.order) {
    if (!facts.kind(i).isWrapper)
      continue;
    const Ids &ids = facts[heaviest[i]].ids;
    const Ids &found = heaviest[i] == i || ids.empty() ? facts[rootOf(facts, i)].ids : ids;
    if (!found.empty())
      facts[i].ids = found;
  }
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
