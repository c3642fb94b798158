// SPDX-License-Identifier: Apache-2.0
#include "products.h"

namespace hlotag::hlo {

constexpr int kMaxReshapes = 8; // between a slice and its contraction

std::optional<size_t> slicedContraction(const Facts &facts, size_t i) {
  bool isPart = facts.kind(i).isSlice;
  for (int step = 0; isPart && step < kMaxReshapes; ++step) {
    i = facts.module.source(elementAt(facts.module.instructions[i].operands, 0));
    if (facts.kind(i).heavy == kContraction)
      return i;
    isPart = facts.kind(i).isReshaped;
  }
  return std::nullopt;
}

void findPart(Facts &facts, size_t i) {
  std::optional<size_t> whole = slicedContraction(facts, i);
  if (!whole)
    return;
  Ids parts;
  for (int64_t number : facts[i].wanted) {
    int64_t source = facts.operations.source(number, facts.opcode(*whole));
    if (source != kNone && facts.operations.kind(source).heavy == kContraction &&
        facts.operations.numElements(source) == facts.size(i))
      parts.push_back(source);
  }
  if (parts.size() != 1)
    return;
  facts[i].ids = parts;
  addOnce(facts[*whole].ids, parts[0]);
}

} // namespace hlotag::hlo
