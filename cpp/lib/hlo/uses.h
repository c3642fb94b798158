// SPDX-License-Identifier: Apache-2.0
//
// Which operation's value do the users of an instruction expect?
#pragma once

#include "facts.h"

#include <utility>
#include <vector>

namespace hlotag::hlo {

class Uses {
public:
  using Use = std::pair<size_t, size_t>; // the user and the operand's position

  explicit Uses(Facts &facts);

  /// Finds the uses of unsure instructions.
  void find();

  const std::vector<Use> &of(size_t i) const { return uses_[i]; }
  /// The operations whose values the program returns and `i` computes.
  const Numbers &results(size_t i) const { return results_[i]; }

  /// Sets `wanted`, `swapped` and `owners` of an instruction whose users were followed before.
  void follow(size_t i);
  /// Appends the operations whose values `uses` of `i` expect, and those in `results(i)`.
  void appendWanted(size_t i, const std::vector<Use> &uses, Numbers &wanted, Numbers &swapped);
  /// Returns true if an instruction computes the result of its operation. Unsure slices do not:
  /// they may take a part of a value that XLA combined or scattered.
  bool isKnown(size_t i);

private:
  void findUsers();
  void findResults();
  void want(Numbers &wanted, size_t user, size_t position);
  void wantOther(Numbers &swapped, size_t user, size_t position);
  void handOn(Numbers &wanted, size_t user);
  bool handsOn(size_t i, size_t position) const;
  bool isRewritten(size_t i, int64_t number) const;
  bool areSwapped(size_t i, const Numbers &operands) const;
  void findOwners(size_t i);

  Facts &facts_;
  std::vector<std::vector<Use>> uses_;
  std::vector<Numbers> results_; // By instruction: the operations whose results it computes.
};

} // namespace hlotag::hlo
