// SPDX-License-Identifier: Apache-2.0
//
// What is known of each instruction while it is joined to operations?
#pragma once

#include "hlotag/hlo/program.h"
#include "operations.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace hlotag::hlo {

struct Fact {
  Numbers ids;           ///< the operations that the instruction comes from, as far as known
  bool isUnsure = false; ///< its name is missing or may be a neighbour's; then the rest is set
  bool isHelper = false; ///< computes an intermediate value of `owners`
  Numbers wanted;        ///< operations whose values its users expect
  Numbers swapped;       ///< as `wanted`, if XLA swapped the operands of its users
  Numbers owners;        ///< the operations of its users
};

class Facts {
public:
  Facts(const Module &module, const Program &program, const std::vector<NumberedName> &names)
      : module(module), names(names), operations(program), unique(program.operations.size()),
        order(module.usersFirst()), facts_(module.instructions.size()) {}

  Fact &operator[](size_t i) { return facts_[i]; }
  const Fact &operator[](size_t i) const { return facts_[i]; }

  const Kind &kind(size_t i) const { return module.kind(i); }
  uint64_t size(size_t i) const { return numElements(module.dimensions(i)); }

  const Module &module;
  const std::vector<NumberedName> &names;
  Operations operations;
  Unique unique;
  const std::vector<size_t> order; // Users before operands.

private:
  std::vector<Fact> facts_; // By instruction.
};

inline void addOnce(Numbers &ids, int64_t number) {
  if (std::find(ids.begin(), ids.end(), number) == ids.end())
    ids.push_back(number);
}

} // namespace hlotag::hlo
