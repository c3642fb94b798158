// SPDX-License-Identifier: Apache-2.0
//
// Which operations must not change places with each other, whatever their operands say.
#pragma once

#include "hlotag/analysis/call_graph.h"

#include <string>
#include <unordered_set>

namespace hlotag::analysis {

/// MLIR's C API does not tell, so this goes by the names of operations. Those of unknown dialects
/// have side effects. Collectives have none: XLA orders them by their operands.
class SideEffects {
public:
  SideEffects(const CallGraph &graph, const ir::OpIds &ids);

  /// Whether `op`, what is nested in it, or a function it calls has one.
  bool has(ir::Operation op);
  /// Says that the function of that name, which is new, has one.
  void add(const std::string &function) { functions_.insert(function); }

private:
  enum class Kind : unsigned char { None, Some, Call, Composite, CustomCall };

  Kind kindOf(ir::Identifier opName);

  const ir::OpIds &ids_;
  ir::PointerMap<Kind> kinds_;
  std::unordered_set<std::string> functions_; // that have one
};

} // namespace hlotag::analysis
