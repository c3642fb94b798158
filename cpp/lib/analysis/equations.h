// SPDX-License-Identifier: Apache-2.0
//
// Which equation of the program does an operation belong to, by its identity?
//
// An operation's *path* is the chain of identities of its function's call, then its own:
//
//     closed   7      everything traced for operation 7: the path ends there
//     open     3 7    operation 7 in the body of the loop, branch or checkpoint 3
//     call     7      operation 7 in a function: the call is left out, because the function may
//                     have other callers
//
// Forward and derived operations of an equation have one path, except that an operation that JAX
// moved out of a loop lacks the loop. So two paths agree if one ends with the other.
#pragma once

#include "hlotag/analysis/provenance.h"
#include "hlotag/ir/identities.h"

#include <cstdint>
#include <vector>

namespace hlotag::analysis {

struct EquationPath {
  std::vector<uint32_t> numbers; ///< outermost first; empty if nothing is known
  bool isClosed = false;         ///< operations traced below it belong to it
  bool isCall = false;           ///< the last number is a call, which the next number replaces

  void append(const ir::Chain &chain, bool isDerived);
  bool agreesWith(const EquationPath &other) const;

  friend bool operator==(const EquationPath &a, const EquationPath &b) {
    return a.numbers == b.numbers && a.isClosed == b.isClosed && a.isCall == b.isCall;
  }
};

/// The paths of a module's operations. The module must not change meanwhile.
class EquationPaths {
public:
  EquationPaths(const ir::Identities &identities, Provenance &provenance);

  /// Returns the paths of an operation in function number `function` of `calls()` whose chain is
  /// `identity`: one for each way in which the function is called. With more than `kMaxContexts`
  /// ways, returns the path without callers.
  std::vector<EquationPath> of(size_t function, ir::Identities::Id identity, bool isDerived) const;

private:
  static constexpr size_t kMaxContexts = 64;

  const ir::Identities &identities_;
  std::vector<std::vector<EquationPath>> contexts_; // by function
};

} // namespace hlotag::analysis
