// SPDX-License-Identifier: Apache-2.0
#include "naming.h"

#include "collectives.h"
#include "products.h"

namespace hlotag::hlo {

namespace {

/// Whether an instruction only changes the shape of what an operation computes: XLA puts such ones
/// around an instruction, under its name, and moves them about.
bool isAround(Facts &facts, size_t i, int64_t number) {
  return facts.kind(i).isReshaped && !facts.operations.becomes(number, facts.opcode(i));
}

Ids byName(Facts &facts, size_t i) {
  Ids numbers = facts.names.at(i).numbers;
  if (hasAllNames(facts, i))
    return members(facts, i, numbers);
  // Of merged operations, those that it can be are its own; the others were folded into it, or
  // into what it is around.
  if (!numbers.empty() && isAround(facts, i, numbers[0]))
    numbers.resize(1);
  Ids own = facts.operations.select(numbers, facts.opcode(i));
  if (!own.empty() || numbers.empty())
    return own;
  // An operand that is of the same equation has the name of its user; which of several it is, the
  // user's operands say.
  Ids helpers;
  for (int64_t helper : facts.operations.helpers(numbers[0], facts.opcode(i)))
    if (facts.operations.kind(helper).opcode == facts.opcode(i))
      helpers.push_back(helper);
  if (helpers.size() == 1)
    numbers[0] = helpers[0];
  return numbers;
}

/// Whether an instruction's name and what it does may both be true.
bool isEnough(Facts &facts, size_t i) {
  const Kinds::Kind &kind = facts.kind(i);
  if (kind.isWrapper || kind.isParameter)
    return true;
  const Ids &ids = facts[i].ids;
  if (!ids.empty() && facts.operations.kind(ids[0]).opcode != facts.opcode(i) &&
      slicedContraction(facts, i))
    return false;
  // A heavy operation is a step of its own to whoever wrote it: a name that says otherwise is a
  // neighbour's.
  bool isTelling = kind.isMove || kind.isHeavy;
  return !ids.empty() && (!isTelling || facts.operations.becomes(ids[0], facts.opcode(i)));
}

} // namespace

void readOperations(Facts &facts) {
  for (size_t i : facts.order) {
    facts[i].ids = byName(facts, i);
    facts[i].isUnsure = !hasAllNames(facts, i) && (isCombined(facts, i) || !isEnough(facts, i));
  }
}

} // namespace hlotag::hlo
