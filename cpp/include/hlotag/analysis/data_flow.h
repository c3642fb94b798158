// SPDX-License-Identifier: Apache-2.0
//
// Which operation computes each operand, and which operations compute the same value?
#pragma once

#include "hlotag/analysis/call_graph.h"
#include "hlotag/ir/ir.h"

#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace hlotag::analysis {

/// Looks through calls and manual computations.
class DataFlow {
public:
  struct Definition {
    ir::Value value;
    std::optional<size_t> op;       ///< the operation with this result; none for a block argument
    std::optional<size_t> function; ///< the function with this argument, if any
  };

  /// Numbers all operations but the first, which is the module, from 0.
  DataFlow(const ir::OpList &operations, const ir::OpIds &ids);

  size_t size() const { return operands_.size(); }
  /// Definitions of the operands. The argument of a function with one call is that call's operand.
  const std::vector<Definition> &operands(size_t op) const { return operands_[op]; }
  /// The function that a `func.call` calls; none for other operations.
  std::optional<size_t> callee(size_t op) const;
  /// Definitions of the results of `main`.
  std::vector<Definition> results() const;
  /// Value numbers, by operation: operations that compute the same from the same operands share
  /// one.
  std::vector<size_t> values() const;

private:
  static constexpr size_t kNoValue = size_t(-1);
  /// Equal for operations with equal results. Frontend attributes do not count.
  struct Computation {
    ir::Operation op; ///< set, and the rest empty, if no other operation computes the same
    ir::Identifier name;
    /// The value number and the result's index; a value in place of both if it has no number.
    std::vector<std::tuple<ir::Value, size_t, intptr_t>> operands;
    std::vector<std::pair<ir::Identifier, ir::Attribute>> attributes; ///< and types of results
    bool operator<(const Computation &o) const {
      return std::tie(op, name, operands, attributes) <
             std::tie(o.op, o.name, o.operands, o.attributes);
    }
  };

  Computation computation(size_t op, const std::vector<size_t> &values) const;
  /// All operations, each after the operations that define its operands, except round a cycle of
  /// calls. Not recursive: a chain of operations may be as long as the program.
  std::vector<size_t> operandsFirst() const;
  ir::Block bodyOf(size_t function) const {
    return calls_.functions()[function].op.regions()[0].firstBlock();
  }
  Definition definition(ir::Value value) const;
  /// The value that calls and manual computations pass on as `value`.
  ir::Value findOrigin(ir::Value value) const;
  /// The operand or returned value that a call or manual computation passes on as `value`, or null.
  ir::Value findSource(ir::Value value) const;

  const ir::OpList &operations_;
  const ir::OpIds &ids_;
  CallGraph calls_;
  ir::PointerMap<size_t> numbers_;
  ir::PointerMap<size_t> functions_, callees_; // of `calls_`: by function, and by func.call
  std::vector<std::vector<Definition>> operands_;
  mutable ir::PointerMap<ir::Value> origins_; // of values that are passed on; null in progress
};

} // namespace hlotag::analysis
