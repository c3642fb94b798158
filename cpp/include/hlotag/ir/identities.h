// SPDX-License-Identifier: Apache-2.0
//
// Which operation of the program was each operation of a module traced for?
#pragma once

#include "hlotag/ir/flat_map.h"
#include "hlotag/ir/operation.h"

#include <cstdint>
#include <map>
#include <vector>

namespace hlotag::ir {

/// One operation of the traced program, by number.
struct Identity {
  enum Kind : uint8_t {
    Closed, ///< all equations traced for it belong to it
    Itself, ///< the operation itself; equations that its rules trace may be operations of their own
    Open,   ///< the equations of its jaxprs are operations of their own
    Call,   ///< as Open; the equations are in a function that other operations may call too
  };
  uint32_t number = 0;
  Kind kind = Closed;

  friend bool operator<(const Identity &a, const Identity &b) {
    return a.number != b.number ? a.number < b.number : a.kind < b.kind;
  }
};

/// Outermost first, within a function.
using Chain = std::vector<Identity>;

/// The chains of a module's operations, from marks. Dropped after foreign passes, which may have
/// changed the module.
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
  /// Copies the chains of all operations in `original` to its clone `copy`.
  void copy(Operation original, Operation copy);

private:
  std::vector<Chain> chains_;
  std::map<Chain, Id> ids_;
  PointerMap<Id> ofOperation_;
};

} // namespace hlotag::ir
