// SPDX-License-Identifier: Apache-2.0
#include "join_rules.h"

#include "join_collectives.h"

#include <optional>

namespace hlotag::hlo {

namespace {

// --- By name -------------------------------------------------------------------------------------

Numbers findHelper(Join &join, size_t i) {
  Numbers numbers = join.facts.names[i].numbers, found;
  if (numbers.empty())
    return {};
  for (int64_t helper : join.facts.operations.helpers(numbers[0]))
    if (isSame(join.facts.operations.kind(helper), join.facts.kind(i)))
      found.push_back(helper);
  if (found.size() != 1)
    return {};
  numbers[0] = found[0];
  return numbers;
}

Numbers findNamed(Join &join, size_t i) { return join.facts.names[i].numbers; }

// --- By data flow --------------------------------------------------------------------------------

/// Returns the contraction that an instruction slices, directly or after reshapes.
std::optional<size_t> findSlicedContraction(const Facts &facts, size_t i) {
  for (bool isPart = facts.kind(i).is(kSlices); isPart; isPart = facts.kind(i).is(kReshapes)) {
    i = facts.module.findSource(elementAt(facts.module.instructions[i].operands, 0));
    if (facts.kind(i).heavy == Heavy::Contraction)
      return i;
  }
  return std::nullopt;
}

Numbers findPartOfContraction(Join &join, size_t i) {
  Facts &facts = join.facts;
  std::optional<size_t> whole = findSlicedContraction(facts, i);
  if (!whole)
    return {};
  Numbers parts;
  for (int64_t number : facts[i].wanted) {
    int64_t source = facts.operations.findSource(number, facts.kind(*whole));
    // Users may want the product that takes the slice, if XLA expanded that one.
    if (source != kNone && facts.operations.kind(source).heavy == Heavy::Contraction &&
        facts.operations.numElements(source) == facts.size(i))
      parts.push_back(source);
  }
  if (parts.size() != 1)
    return {};
  addOnce(facts[*whole].ids, parts[0]);
  return parts;
}

/// Returns true if an operation has entries and an instruction has all of them.
bool hasEntriesOf(const Facts &facts, size_t i, int64_t number) {
  Entries entries = facts.module.attributes(i);
  const Entries &own = facts.operations.entries(number);
  return !own.empty() && std::includes(entries.begin(), entries.end(), own.begin(), own.end());
}

/// Returns the operation of a move that has a neighbour's name: what its users expect, a helper, or
/// the named one, unless that runs others. If XLA left the entries of one of these, it is that one.
Numbers findMove(Join &join, size_t i) {
  Facts &facts = join.facts;
  const Fact &fact = facts[i];
  if (fact.ids.empty() || !facts.kind(i).is(kMoves))
    return {};
  Numbers found;
  for (int64_t number : facts.operations.relabellings(fact.ids[0]))
    if (facts.kind(i).is(kReshapes) && hasEntriesOf(facts, i, number) &&
        facts.operations.dimensions(number) == facts.module.dimensions(i))
      return {number};
  for (int64_t number : facts.operations.select(fact.wanted, facts.kind(i)))
    if (facts.operations.numElements(number) == facts.size(i))
      found.push_back(number);
  for (int64_t helper :
       facts.operations.select(facts.operations.helpers(fact.ids[0]), facts.kind(i)))
    found.push_back(helper);
  std::copy_if(fact.ids.begin(), fact.ids.end(), std::back_inserter(found),
               [&](int64_t named) { return !facts.operations.runsOthers(named); });
  if (found.empty())
    return {};
  auto tagged = std::find_if(found.begin(), found.end(),
                             [&](int64_t number) { return hasEntriesOf(facts, i, number); });
  return {tagged == found.end() ? found[0] : *tagged};
}

/// Returns the products of the program that no instruction is known to compute, by size.
std::map<uint64_t, Numbers> findUncomputedProducts(const Facts &facts) {
  std::vector<bool> isComputed(facts.operations.size());
  for (size_t i : facts.order)
    if (facts.kind(i).heavy == Heavy::Contraction || facts.kind(i).heavy == Heavy::CustomCall)
      for (int64_t number : facts[i].ids)
        isComputed[size_t(number)] = true;
  std::map<uint64_t, Numbers> found;
  for (int64_t number = 0; number < int64_t(isComputed.size()); ++number)
    if (!isComputed[size_t(number)] && facts.operations.kind(number).heavy == Heavy::Contraction)
      if (uint64_t size = facts.operations.numElements(number))
        found[size].push_back(number);
  return found;
}

/// Returns the product that an instruction is, or whose parts it sums up.
size_t findSummed(const Facts &facts, size_t i) {
  auto operand = [&](size_t user) {
    return facts.module.findSource(elementAt(facts.module.instructions[user].operands, 0));
  };
  if (facts.kind(i).heavy != Heavy::Reduce)
    return i;
  i = operand(i);
  for (int step = 0; step < Operations::kMaxMoves && facts.kind(i).is(kReshapes); ++step)
    i = operand(i);
  return i;
}

/// GPU's compiler may divide a product into parts and sum them up, all without a name.
Numbers findOnlyProduct(Join &join, size_t i) {
  const Facts &facts = join.facts;
  if (!facts[i].ids.empty())
    return {};
  size_t product = findSummed(facts, i);
  if (facts.kind(product).heavy != Heavy::Contraction || !facts[product].ids.empty())
    return {};
  if (!join.uncomputed)
    join.uncomputed = findUncomputedProducts(facts);
  Numbers found;
  for (const auto &[size, numbers] : *join.uncomputed) {
    bool isSum = product == i || (facts.size(i) == size && facts.size(product) != size);
    if (!isSum || facts.size(product) % size != 0)
      continue;
    if (!found.empty() || numbers.size() > 1)
      return {};
    found = numbers;
  }
  return found;
}

/// Returns the operations that become `i`: those of a list, or those whose value they move.
template <Numbers Fact::*list> Numbers findSources(Join &join, size_t i) {
  Facts &facts = join.facts;
  Numbers found;
  facts.unique.start();
  for (int64_t number : facts[i].*list)
    if (int64_t source = facts.operations.findSource(number, facts.kind(i)); source != kNone)
      facts.unique.add(found, source);
  return found;
}

Numbers keepName(Join &join, size_t i) { return join.facts[i].ids; }

/// Returns the operations that XLA expanded to a loop, if an instruction is the result of its body.
Numbers findExpanded(const Facts &facts, size_t i) {
  const Module &module = facts.module;
  const Module::Computation &computation = module.computations[module.instructions[i].computation];
  if (computation.root != i || !computation.caller)
    return {};
  size_t loop = *computation.caller;
  const Numbers &ids = facts[loop].ids;
  bool isExpansion = facts.kind(loop).is(kLoop) && !ids.empty() &&
                     !isSame(facts.operations.kind(ids[0]), facts.kind(loop));
  return isExpansion ? ids : Numbers();
}

Numbers findOwners(Join &join, size_t i) {
  Facts &facts = join.facts;
  Fact &fact = facts[i];
  if (fact.owners.empty())
    fact.owners = findExpanded(facts, i);
  fact.isHelper = true;
  return facts.kind(i).is(kXlasOwn) ? Numbers() : fact.owners;
}

// --- By computation ------------------------------------------------------------------------------

Numbers findInWrapper(Join &join, size_t i) {
  return join.heaviest[i] == i ? Numbers() : join.facts[join.heaviest[i]].ids;
}

/// Looks through copies without a name, which XLA inserted.
const Numbers &findCopied(const Facts &facts, size_t i) {
  while (facts.kind(i).is(kCopies) && facts[i].ids.empty())
    i = facts.module.findSource(elementAt(facts.module.instructions[i].operands, 0));
  return facts[i].ids;
}

Numbers findRoot(Join &join, size_t i) {
  const Facts &facts = join.facts;
  if (!facts.kind(i).is(kWraps))
    return {};
  size_t root = facts.module.findWrapped(i);
  if (!facts.kind(root).is(kTuple))
    return findCopied(facts, root);
  for (size_t result : facts.module.instructions[root].operands)
    if (const Numbers &found = findCopied(facts, result); !found.empty())
      return found;
  return {};
}

Numbers findCaller(Join &join, size_t i) {
  const Facts &facts = join.facts;
  Numbers found;
  if (facts[i].ids.empty() && !facts.kind(i).is(kXlasOwn))
    for (size_t caller : join.callers[facts.module.instructions[i].computation])
      if (!facts[caller].ids.empty())
        found = facts[caller].ids;
  return found;
}

using Step = JoinRule::Step;

// In examples, names of instructions stand in brackets.
constexpr JoinRule kRules[] = {
    {Step::Name, "combined", "a collective whose name lists what XLA combined: all of these",
     "all-reduce(a, b) [f/(psum:psum)]", findCombinedNames},
    {Step::Name, "helper", "what has its user's name: the helper of that user",
     "broadcast(c) [f/mul]", findHelper},
    {Step::Name, "name", "others: the operations in the name", "sine(x) [f/sin]", findNamed},

    {Step::Flow, "part", "a slice of a product that XLA made of several: the product it is",
     "slice(dot(x, concatenate(v, w))) [f/v/dot_general]", findPartOfContraction},
    {Step::Flow, "piece", "a piece of a collective in another fusion: as the last piece",
     "all-gather(w), channel_id=7 []", findPiece},
    {Step::Flow, "collective", "a combined or inserted collective: for each part, what users take",
     "get-tuple-element(all-reduce(a, b)), index=1 []", findCollective},
    {Step::Flow, "move", "a move with a neighbour's name: what users take, or a helper",
     "transpose(a) [f/dot_general]", findMove},
    {Step::Flow, "behind", "what has the name of a move behind it: what that move moves",
     "dot(a, b) [f/transpose]", findSources<&Fact::ids>},
    {Step::Flow, "only", "a product without a name, or the sum of its parts: the one that is left",
     "dot(a, b) []", findOnlyProduct},
    {Step::Flow, "wanted", "others: the operation whose value the users take",
     "sine(dot(a, b) []) [f/sin]", findSources<&Fact::wanted>},
    {Step::Flow, "swapped", "the same, where XLA swapped the operands of a user",
     "multiply(dot(a, b) [], 2) [f/mul]", findSources<&Fact::swapped>},
    {Step::Flow, "kept-name", "others: the operations in the name, after all",
     "shift-right-logical(x, 3) [f/div]", keepName},
    {Step::Flow, "owner", "constants and pieces of expansions: the operations of the users",
     "add(constant(1) [], x) [f/add]", findOwners},

    {Step::Computed, "heaviest", "a fusion or asynchronous pair: those of the heaviest in it",
     "fusion(a, b), calls={dot, add} [f/add]", findInWrapper},
    {Step::Computed, "root", "the same, with nothing heavy in it: those of its first result",
     "fusion(a), calls={copy(add)} []", findRoot},
    {Step::Computed, "body", "nameless in the body of a reduction, sort or scatter: its caller's",
     "reduce(x, 0), to_apply={add []} [f/reduce_sum]", findCaller},
};

} // namespace

const std::vector<JoinRule> &joinRules() {
  static const std::vector<JoinRule> rules(std::begin(kRules), std::end(kRules));
  return rules;
}

bool isUnsure(Facts &facts, size_t i) {
  const Kind &kind = facts.kind(i);
  if (hasAllNames(facts, i))
    return false;
  if (isCombined(facts, i))
    return true;
  if (kind.is(kWraps) || kind.is(kParameter))
    return false;
  const Numbers &ids = facts[i].ids;
  if (ids.empty() ||
      (!isSame(facts.operations.kind(ids[0]), kind) && findSlicedContraction(facts, i)))
    return true;
  // XLA makes moves and heavy instructions from few kinds of operations. It rewrites others freely.
  return (kind.is(kMoves) || kind.isHeavy()) && !facts.operations.becomes(ids[0], facts.kind(i));
}

} // namespace hlotag::hlo
