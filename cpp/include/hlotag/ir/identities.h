// SPDX-License-Identifier: Apache-2.0
//
// Which operations of the program the operations of a module were traced for.
#pragma once

#include "hlotag/ir/flat_map.h"
#include "hlotag/ir/operation.h"

#include <cstdint>
#include <map>
#include <vector>

namespace hlotag::ir {

/// One operation that the program traced, by a number of its own.
struct Identity {
  enum Kind : uint8_t {
    Closed, ///< all that was traced for it belongs to it
    Itself, ///< closed, but not what a rule traced: its jaxprs may hold operations of their own
    Open,   ///< the equations of its jaxprs are operations of their own
    Call,   ///< the same, and others may call the function that holds them
  };
  uint32_t number = 0;
  Kind kind = Closed;

  friend bool operator<(const Identity &a, const Identity &b) {
    return a.number != b.number ? a.number < b.number : a.kind < b.kind;
  }
};

/// Outermost first, within a function.
using Chain = std::vector<Identity>;

/// The chains of a module's operations, from marks. Copied with a function, and dropped when
/// something else than a pass of ours may have changed the module.
class Identities {
public:
  using Id = uint32_t;
  static constexpr Id kNone = 0;

  Identities() : chains_(1) {}

  bool empty() const { return chains_.size() == 1; }
  /// `kNone` for an empty chain.
  Id intern(const Chain &chain);
  const Chain &chain(Id id) const { return chains_[id]; }

  void set(Operation op, Id id);
  Id of(Operation op) const;
  /// For all operations in `copy`, those of `original`, of which it is a clone.
  void copy(Operation original, Operation copy);

private:
  std::vector<Chain> chains_;
  std::map<Chain, Id> ids_;
  PointerMap<Id> ofOperation_;
};

} // namespace hlotag::ir
