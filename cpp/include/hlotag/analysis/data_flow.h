// SPDX-License-Identifier: Apache-2.0
//
// What computes the operands of operations, followed through calls, and which compute the same.
#pragma once

#include "hlotag/analysis/call_graph.h"
#include "hlotag/ir/ir.h"

#include <optional>
#include <vector>

namespace hlotag::analysis {

class DataFlow {
public:
  /// A result of an operation, which has a number, or an argument that nothing here makes.
  struct Definition {
    ir::Value value;
    std::optional<size_t> op;
  };

  /// Operations are numbered from 0 after the first of `operations`, which is the module.
  DataFlow(const ir::OpList &operations, const ir::OpIds &ids);

  size_t size() const { return operands_.size(); }
  /// What computes the operands. A function's argument is its call's operand if there is but one.
  const std::vector<Definition> &operands(size_t op) const { return operands_[op]; }
  /// What computes the results of `main`.
  std::vector<Definition> results() const;
  /// By operation, a number that operations share which compute the same from the same.
  std::vector<size_t> values() const;

private:
  ir::Block bodyOf(size_t function) const {
    return calls_.functions()[function].op.regions()[0].firstBlock();
  }
  Definition definition(ir::Value value) const;
  /// The value that a value is handed on from by a call, or null.
  ir::Value source(ir::Value value) const;

  const ir::OpList &operations_;
  const ir::OpIds &ids_;
  CallGraph calls_;
  ir::PointerMap<size_t> numbers_;
  ir::PointerMap<size_t> functions_, callees_; // of `calls_`: by function, and by func.call
  std::vector<std::vector<Definition>> operands_;
};

} // namespace hlotag::analysis
