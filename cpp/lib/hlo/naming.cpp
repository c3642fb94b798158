// SPDX-License-Identifier: Apache-2.0
#include "naming.h"

#include "collectives.h"
#include "products.h"

namespace hlotag::hlo {

namespace {

/// Returns true for a layout op that XLA inserted around the operation, under its name.
bool isAround(Facts &facts, size_t i, int64_t number) {
  return facts.kind(i).isReshaped && !facts.operations.becomes(number, facts.opcode(i));
}

Ids byName(Facts &facts, size_t i) {
  Ids numbers = facts.names.at(i).numbers;
  if (hasAllNames(facts, i))
    return members(facts, i, numbers);
  // XLA folded the other merged operations into this one, or into the instruction that a layout op
  // is around.
  if (!numbers.empty() && isAround(facts, i, numbers[0]))
    numbers.resize(1);
  Ids own = facts.operations.select(numbers, facts.opcode(i));
  if (!own.empty() || numbers.empty())
    return own;
  // A helper has the number of its user. `moved` chooses among several.
  Ids helpers;
  for (int64_t helper : facts.operations.helpers(numbers[0], facts.opcode(i)))
    if (facts.operations.kind(helper).opcode == facts.opcode(i))
      helpers.push_back(helper);
  if (helpers.size() == 1)
    numbers[0] = helpers[0];
  return numbers;
}

/// Returns true if an instruction may compute the operation that it is named after.
bool isReliable(Facts &facts, size_t i) {
  const Kinds::Kind &kind = facts.kind(i);
  if (kind.isWrapper || kind.isParameter)
    return true;
  const Ids &ids = facts[i].ids;
  if (!ids.empty() && facts.operations.kind(ids[0]).opcode != facts.opcode(i) &&
      slicedContraction(facts, i))
    return false;
  // XLA makes moves and heavy instructions from few kinds of operations. It rewrites others freely.
  bool isChecked = kind.isMove || kind.isHeavy;
  return !ids.empty() && (!isChecked || facts.operations.becomes(ids[0], facts.opcode(i)));
}

} // namespace

void readOperations(Facts &facts) {
  for (size_t i : facts.order) {
    facts[i].ids = byName(facts, i);
    facts[i].isUnsure = !hasAllNames(facts, i) && (isCombined(facts, i) || !isReliable(facts, i));
  }
}

} // namespace hlotag::hlo
