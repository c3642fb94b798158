// SPDX-License-Identifier: Apache-2.0
#include "join_collectives.h"

namespace hlotag::hlo {

bool isCombined(const Facts &facts, size_t i) {
  return facts.kind(i).is(kCombines) && facts.module.instructions[i].operands.size() > 1;
}

bool hasAllNames(const Facts &facts, size_t i) {
  return facts.names[i].isCombined && facts.kind(i).is(kCombines);
}

namespace {

/// Replaces those of `numbers` that only move a collective's result by the collective.
Numbers replaceByCollectives(Facts &facts, size_t i, const Numbers &numbers) {
  Numbers ids;
  for (int64_t number : numbers) {
    int64_t source = facts.operations.findSource(number, facts.kind(i));
    addOnce(ids, source == kNone ? number : source);
  }
  return ids;
}

/// Adds the operations of `numbers` that become a collective; returns whether there are any.
bool addSources(Facts &facts, size_t i, const Numbers &numbers, Numbers &ids) {
  bool isFound = false;
  for (int64_t number : numbers)
    if (int64_t source = facts.operations.findSource(number, facts.kind(i)); source != kNone) {
      addOnce(ids, source);
      isFound = true;
    }
  return isFound;
}

/// Adds the operations among `wanted`, else among `swapped`, that become the collective; else the
/// operation that XLA's partitioner inserted the collective for.
void addWanted(Facts &facts, size_t i, const Numbers &wanted, const Numbers &swapped,
               const Numbers &owners, Numbers &ids) {
  if (addSources(facts, i, wanted, ids) || addSources(facts, i, swapped, ids))
    return;
  // The partitioner sums the result of an operation, or gathers an operand of its first user.
  Heavy heavy = facts.kind(i).heavy;
  bool isSum = (heavy == Heavy::AllReduce || heavy == Heavy::ReduceScatter) && !wanted.empty();
  const Numbers &made = isSum ? wanted : owners;
  // XLA sums over devices once if the program adds several such sums.
  if (isSum && addSources(facts, i, facts.operations.operands(made[0]), ids))
    return;
  if (!made.empty())
    addOnce(ids, made[0]);
}

/// Adds the operation whose result is `part`: an element of the collective's result, or all of it.
void addMember(Facts &facts, Uses &uses, size_t i, size_t part, const std::vector<Uses::Use> &of,
               Numbers &ids) {
  Numbers wanted, swapped;
  uses.appendWanted(part, of, wanted, swapped);
  addWanted(facts, i, wanted, swapped, facts[part].owners, ids);
}

/// Returns, for each part of a collective's result, the operation whose value the users of the part
/// expect. Empty if they expect none.
Numbers findMembers(Facts &facts, Uses &uses, size_t i) {
  Numbers ids = replaceByCollectives(facts, i, facts[i].ids);
  std::vector<Uses::Use> whole;
  for (const Uses::Use &use : uses.of(i)) {
    const Kind &kind = facts.kind(use.first);
    if (kind.is(kElement))
      addMember(facts, uses, i, use.first, {use}, ids);
    else
      whole.push_back(use);
  }
  const Numbers &results = uses.results(i);
  bool returnsParts = results.size() == facts.module.instructions[i].operands.size();
  for (size_t part = 0; returnsParts && part < results.size(); ++part)
    addWanted(facts, i, {results[part]}, {}, facts[i].owners, ids);
  if (!whole.empty() || (!returnsParts && !results.empty()))
    addMember(facts, uses, i, i, whole, ids);
  return ids;
}

/// Whether an instruction is a collective that XLA combined, moved or inserted.
bool isChangedCollective(const Facts &facts, size_t i) {
  return isCombined(facts, i) || (facts[i].ids.empty() && facts.kind(i).is(kCombines));
}

} // namespace

Numbers findCombinedNames(Join &join, size_t i) {
  return hasAllNames(join.facts, i)
             ? replaceByCollectives(join.facts, i, join.facts.names[i].numbers)
             : Numbers();
}

Numbers findPiece(Join &join, size_t i) {
  const Module::Instruction &instruction = join.facts.module.instructions[i];
  if (instruction.channel == 0 || !join.facts.names[i].numbers.empty() ||
      !join.facts.kind(i).is(kCombines))
    return {};
  auto [last, isNew] = join.pieces.try_emplace({instruction.opcode, instruction.channel}, i);
  return isNew ? Numbers() : join.facts[last->second].ids;
}

Numbers findCollective(Join &join, size_t i) {
  return isChangedCollective(join.facts, i) ? findMembers(join.facts, join.uses, i) : Numbers();
}

} // namespace hlotag::hlo
