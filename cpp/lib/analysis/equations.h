// SPDX-License-Identifier: Apache-2.0
//
// Which equation of the program an operation belongs to, by its identity.
//
// An operation's *path* is its chain of identities, with those of the calls of its function in
// front:
//
//     closed   7      what was traced for operation 7: the path ends there
//     open     3 7    operation 7 in the body of the loop, branch or checkpoint 3
//     call     7      operation 7 in a function: the function may have other callers, so that the
//                     call is left out; the call itself has the call's
//
// Forward and derived operations of an equation have one path, but for loops: what JAX moves out of
// one has lost the loop. So paths agree if one ends in the other.
#pragma once

#include "hlotag/analysis/call_graph.h"
#include "hlotag/analysis/provenance.h"
#include "hlotag/ir/identities.h"

#include <cstdint>
#include <vector>

namespace hlotag::analysis {

struct EquationPath {
  std::vector<uint32_t> numbers; ///< outermost first; empty if nothing is known
  bool isClosed = false;         ///< whatever follows is part of it
  bool isCall = false;           ///< the last is a call, and what follows replaces them all

  void append(const ir::Chain &chain, bool isDerived);
  bool agreesWith(const EquationPath &other) const;

  friend bool operator==(const EquationPath &a, const EquationPath &b) {
    return a.numbers == b.numbers && a.isClosed == b.isClosed && a.isCall == b.isCall;
  }
};

/// The paths of the operations of a module that did not change since.
class EquationPaths {
public:
  EquationPaths(const CallGraph &graph, const ir::Identities &identities, Provenance &provenance);

  /// Those of an operation, derived or not, in function number `function` whose chain is
  /// `identity`: one for each way in which the function is called. A function that is called in
  /// more ways than `kMaxContexts` is seen as if nothing called it.
  std::vector<EquationPath> of(size_t function, ir::Identities::Id identity, bool isDerived) const;

private:
  static constexpr size_t kMaxContexts = 64;

  const ir::Identities &identities_;
  std::vector<std::vector<EquationPath>> contexts_; // by function
};

} // namespace hlotag::analysis
