// SPDX-License-Identifier: Apache-2.0
//
// Which operations must keep their order, apart from data flow?
#pragma once

#include "hlotag/analysis/call_graph.h"

#include <string>
#include <unordered_set>

namespace hlotag::analysis {

/// MLIR's C API does not tell, so the names of operations decide. Operations of unknown dialects
/// have side effects. Collectives have none: XLA orders them by their operands.
class SideEffects {
public:
  SideEffects(const CallGraph &graph, const ir::OpIds &ids);

  /// Whether `op`, an operation in its regions, or a function it calls has a side effect.
  bool has(ir::Operation op);
  /// Adds a new function with a side effect.
  void add(const std::string &function) { functions_.insert(function); }

private:
  enum class Kind : unsigned char { None, Some, Call, Composite, CustomCall };

  Kind kindOf(ir::Identifier opName);

  const ir::OpIds &ids_;
  ir::PointerMap<Kind> kinds_;
  std::unordered_set<std::string> functions_; // that have one
};

} // namespace hlotag::analysis
