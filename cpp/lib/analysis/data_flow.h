// SPDX-License-Identifier: Apache-2.0
//
// Which operation computes each operand, and which operations compute the same value?
#pragma once

#include "hlotag/analysis/call_graph.h"
#include "hlotag/ir/ir.h"

#include <map>
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
  DataFlow(const ir::OpList &operations, const ir::OpIds &ids)
      : operations_(operations), ids_(ids), calls_(operations, ids),
        operands_(operations.size() - 1) {
    for (const CallGraph::CallSite &site : calls_.callSites())
      if (site.callee != CallGraph::kNoFunction && site.op.name() == ids.funcCall)
        *callees_.insert(site.op.opaque()).first = site.callee;
    for (size_t number = 0; number < size(); ++number)
      *numbers_.insert(operations[number + 1].op.opaque()).first = number;
    for (size_t number = 0; number < size(); ++number)
      for (ir::Value value : operations[number + 1].op.operands())
        operands_[number].push_back(definition(value));
  }

  size_t size() const { return operands_.size(); }
  /// Definitions of the operands. The argument of a function with one call is that call's operand.
  const std::vector<Definition> &operands(size_t op) const { return operands_[op]; }

  /// The function that a `func.call` calls; none for other operations.
  std::optional<size_t> callee(size_t op) const {
    const size_t *function = callees_.find(operations_[op + 1].op.opaque());
    if (!function)
      return {};
    return *numbers_.find(calls_.functions()[*function].op.opaque());
  }

  /// Definitions of the results of `main`.
  std::vector<Definition> results() const {
    std::vector<Definition> found;
    size_t main = calls_.find("main");
    if (main == CallGraph::kNoFunction)
      return found;
    if (ir::Operation end = bodyOf(main).terminator())
      for (ir::Value value : end.operands())
        found.push_back(definition(value));
    return found;
  }

  /// Value numbers, by operation: operations that compute the same from the same operands share
  /// one.
  std::vector<size_t> values() const {
    std::map<Computation, size_t> known;
    std::vector<size_t> values(size(), kNoValue);
    for (size_t number : operandsFirst())
      values[number] = known.emplace(computation(number, values), known.size()).first->second;
    return values;
  }

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

  Computation computation(size_t number, const std::vector<size_t> &values) const {
    auto [op, name, numNested, hasRegions] = operations_[number + 1];
    if (hasRegions || ids_.is(name, ir::kUnequal))
      return {op};
    Computation made{{}, name};
    for (const Definition &operand : operands(number)) {
      if (operand.op && values[*operand.op] != kNoValue)
        made.operands.emplace_back(ir::Value(), values[*operand.op], operand.value.number());
      else
        made.operands.emplace_back(operand.value, kNoValue, 0);
    }
    for (ir::NamedAttribute attr : op.attributes())
      if (attr.name != ids_.frontendAttributes && attr.name.str() != ir::kOrigins)
        made.attributes.emplace_back(attr.name, attr.value);
    for (ir::Value result : op.results())
      made.attributes.emplace_back(ir::Identifier(), capi::fn().mlirTypeAttrGet(result.type()));
    return made;
  }

  /// All operations, each after the operations that define its operands, except round a cycle of
  /// calls.
  std::vector<size_t> operandsFirst() const {
    return successorsFirst(size(), [&](size_t op, size_t operand) -> std::optional<size_t> {
      if (operand == operands(op).size())
        return {};
      return operands(op)[operand].op.value_or(op);
    });
  }

  ir::Block bodyOf(size_t function) const {
    return calls_.functions()[function].op.regions()[0].firstBlock();
  }

  Definition definition(ir::Value value) const {
    value = findOrigin(value);
    auto numberOf = [&](ir::Operation op) { return std::optional(*numbers_.find(op.opaque())); };
    if (ir::Operation op = value.definingOp())
      return {value, op.name() != ids_.funcCall ? numberOf(op) : std::nullopt, {}};
    ir::Operation parent = value.ownerBlock().parentOp();
    bool isFunction = calls_.find(parent);
    return {value, {}, isFunction ? numberOf(parent) : std::nullopt};
  }

  /// The value that calls and manual computations pass on as `value`.
  /// Looks through each call once, so a chain of calls costs its length. In a cycle of calls, ends
  /// at any value of the cycle.
  ir::Value findOrigin(ir::Value value) const {
    std::vector<ir::Value> chain;
    while (ir::Value from = findSource(value)) {
      auto [known, isNew] = origins_.insert(value.opaque());
      if (!isNew) {
        value = *known ? *known : value;
        break;
      }
      chain.push_back(value);
      value = from;
    }
    for (ir::Value passed : chain)
      *origins_.find(passed.opaque()) = value;
    return value;
  }

  /// The operand or returned value that a call or manual computation passes on as `value`, or null.
  ir::Value findSource(ir::Value value) const {
    if (ir::Operation call = value.definingOp()) {
      if (call.name() == ids_.manualComputation)
        return call.regions()[0].firstBlock().findYielded(value.number());
      const size_t *callee = callees_.find(call.opaque());
      return callee ? bodyOf(*callee).findYielded(value.number()) : ir::Value();
    }
    ir::Operation parent = value.ownerBlock().parentOp();
    if (parent.name() == ids_.manualComputation)
      return value.number() < parent.operands().size() ? parent.operands()[value.number()]
                                                       : ir::Value();
    const size_t *function = calls_.find(parent);
    // Arguments of the other blocks come from branches.
    if (!function || value.ownerBlock() != bodyOf(*function) ||
        calls_.functions()[*function].callers.size() != 1)
      return {};
    ir::Operation call = calls_.callSites()[calls_.functions()[*function].callers[0]].op;
    bool isGiven = call.name() == ids_.funcCall && value.number() < call.operands().size();
    return isGiven ? call.operands()[value.number()] : ir::Value();
  }

  const ir::OpList &operations_;
  const ir::OpIds &ids_;
  CallGraph calls_;
  ir::PointerMap<size_t> numbers_;
  ir::PointerMap<size_t> callees_; // in `calls_`, by func.call
  std::vector<std::vector<Definition>> operands_;
  mutable ir::PointerMap<ir::Value> origins_; // of values that are passed on; null in progress
};

} // namespace hlotag::analysis
