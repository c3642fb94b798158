// SPDX-License-Identifier: Apache-2.0
//
// For the value of which operation do the users of an instruction take it?
#pragma once

#include "facts.h"

#include <utility>
#include <vector>

namespace hlotag::hlo {

class Uses {
public:
  using Use = std::pair<size_t, size_t>; // What uses a value, and at which operand.

  /// Finds the uses of the instructions whose names are not enough.
  explicit Uses(Facts &facts);

  const std::vector<Use> &of(size_t i) const { return uses_[i]; }
  /// The operations whose results, as the program's, an instruction computes.
  const Ids &results(size_t i) const { return results_[i]; }

  /// Sets what the users of an instruction want, and whose they are. They are followed before.
  void follow(size_t i);
  /// Appends what some users of an instruction want; as a result of the program, `i` is wanted,
  /// too.
  void appendWanted(size_t i, const std::vector<Use> &uses, Ids &wanted, Ids &swapped);
  /// Whether an instruction is one of the program's operations. A nameless slice may be a part of
  /// what XLA combined or scattered.
  bool isKnown(size_t i);

private:
  void findUsers();
  void findResults();
  void want(Ids &wanted, size_t user, size_t position);
  void wantOther(Ids &swapped, size_t user, size_t position);
  void handOn(Ids &wanted, size_t user);
  bool handsOn(size_t i, size_t position) const;
  bool isRewritten(size_t i, int64_t number) const;
  bool areSwapped(size_t i, const Ids &operands) const;
  void findOwners(size_t i);

  Facts &facts_;
  std::vector<std::vector<Use>> uses_;
  std::vector<Ids> results_; // By instruction: the operations whose results it computes.
};

} // namespace hlotag::hlo
