// SPDX-License-Identifier: Apache-2.0
//
// Which runs of equations are the lowering of one primitive?
#include "equations.h"

#include <algorithm>

namespace hlotag::derivation {

using namespace ir;

/// Returns the number of equations from `first` on that are the lowering of `expansion`; 0 if none.
size_t Equations::lengthOf(const Expansion &expansion, size_t first) const {
  const Equation &begin = equations[first];
  size_t at = first, name = 0;
  Ids made, taken;
  while (name < expansion.names.size()) {
    if (at == equations.size())
      return 0;
    const Equation &next = equations[at];
    if (next.place != begin.place || next.site != begin.site || next.isDerived != begin.isDerived ||
        next.primitive != expansion.names[name])
      return 0;
    // A broadcast or reshape of an operand has the primitive of its user in its name.
    size_t count = 0;
    while (count < next.ops.size() && name + count < expansion.names.size() &&
           expansion.names[name + count] == next.primitive)
      ++count;
    name += std::min(count, next.ops.size());
    made.insert(made.end(), next.outs.begin(), next.outs.end());
    taken.insert(taken.end(), next.ins.begin(), next.ins.end());
    ++at;
  }
  size_t length = at - first;
  if (length < 2)
    return 0;
  for (size_t i = first; i + 1 < at; ++i) {
    const Ids &outs = equations[i].outs;
    if (std::none_of(outs.begin(), outs.end(), [&](ValueId out) { return contains(taken, out); }))
      return 0;
  }
  Ids outside;
  for (ValueId in : taken) {
    bool isLiteral = values[in].isConstant && !values[in].isLinear;
    if (!isLiteral && !contains(made, in) && !contains(outside, in))
      outside.push_back(in);
  }
  return outside.size() <= expansion.arity ? length : 0;
}

void Equations::mergeExpanded() {
  std::vector<Equation> merged;
  merged.reserve(equations.size());
  for (size_t at = 0; at < equations.size();) {
    size_t length = 0;
    TextId primitive = 0;
    if (const auto *expansions = table_.expansions(equations[at].primitive))
      for (size_t i = 0; length == 0 && i < expansions->size(); ++i) {
        length = lengthOf((*expansions)[i], at);
        primitive = (*expansions)[i].primitive;
      }
    if (length == 0) {
      merged.push_back(std::move(equations[at++]));
      continue;
    }
    Equation whole = equations[at + length - 1];
    Ids made, taken;
    std::vector<Operation> ops;
    for (size_t i = at; i < at + length; ++i) {
      const Equation &part = equations[i];
      made.insert(made.end(), part.outs.begin(), part.outs.end());
      taken.insert(taken.end(), part.ins.begin(), part.ins.end());
      ops.insert(ops.end(), part.ops.begin(), part.ops.end());
    }
    whole.primitive = primitive;
    whole.ops = std::move(ops);
    whole.ins.clear();
    bool isLinear = false;
    for (ValueId in : taken)
      if (!contains(made, in) && !contains(whole.ins, in)) {
        whole.ins.push_back(in);
        isLinear |= values[in].isLinear;
      }
    for (ValueId out : whole.outs)
      values[out].isLinear = isLinear;
    merged.push_back(std::move(whole));
    at += length;
  }
  equations = std::move(merged);
}

} // namespace hlotag::derivation
