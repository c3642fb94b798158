// SPDX-License-Identifier: Apache-2.0
#include "hlotag/analysis/data_flow.h"

#include <map>

namespace hlotag::analysis {

using ir::Operation;
using ir::Value;

DataFlow::DataFlow(const ir::OpList &operations, const ir::OpIds &ids)
    : operations_(operations), ids_(ids), calls_(operations, ids),
      operands_(operations.size() - 1) {
  for (size_t f = 0; f < calls_.functions().size(); ++f)
    *functions_.insert(calls_.functions()[f].op.opaque()).first = f;
  for (const CallGraph::CallSite &site : calls_.callSites())
    if (site.callee != CallGraph::kNone && site.op.name() == ids.funcCall)
      *callees_.insert(site.op.opaque()).first = site.callee;
  for (size_t number = 0; number < size(); ++number)
    *numbers_.insert(operations[number + 1].op.opaque()).first = number;
  for (size_t number = 0; number < size(); ++number)
    for (Value value : operations[number + 1].op.operands())
      operands_[number].push_back(definition(value));
}

std::vector<DataFlow::Definition> DataFlow::results() const {
  std::vector<Definition> found;
  size_t main = calls_.find("main");
  if (main == CallGraph::kNone)
    return found;
  if (Operation end = bodyOf(main).terminator())
    for (Value value : end.operands())
      found.push_back(definition(value));
  return found;
}

std::optional<size_t> DataFlow::callee(size_t op) const {
  const size_t *function = callees_.find(operations_[op + 1].op.opaque());
  if (!function)
    return {};
  return *numbers_.find(calls_.functions()[*function].op.opaque());
}

DataFlow::Computation DataFlow::computation(size_t number,
                                            const std::vector<size_t> &values) const {
  auto [op, name, numNested, hasRegions] = operations_[number + 1];
  if (hasRegions || ids_.is(name, ir::kUnequal))
    return {op};
  Computation made{{}, name};
  for (const Definition &operand : operands(number)) {
    if (operand.op && values[*operand.op] != kNoValue)
      made.operands.emplace_back(Value(), values[*operand.op], operand.value.number());
    else
      made.operands.emplace_back(operand.value, kNoValue, 0);
  }
  for (ir::NamedAttribute attr : op.attributes())
    if (attr.name != ids_.frontendAttributes && attr.name.str() != ir::kOrigins)
      made.attributes.emplace_back(attr.name, attr.value);
  for (Value result : op.results())
    made.attributes.emplace_back(ir::Identifier(), capi::fn().mlirTypeAttrGet(result.type()));
  return made;
}

std::vector<size_t> DataFlow::values() const {
  std::map<Computation, size_t> known;
  std::vector<size_t> values(size(), kNoValue);
  for (size_t number : operandsFirst())
    values[number] = known.emplace(computation(number, values), known.size()).first->second;
  return values;
}

std::vector<size_t> DataFlow::operandsFirst() const {
  struct Frame {
    size_t op, nextOperand;
  };
  std::vector<size_t> order;
  std::vector<bool> isSeen(size());
  std::vector<Frame> stack;
  auto enter = [&](size_t op) {
    if (!isSeen[op])
      stack.push_back({op, 0});
    isSeen[op] = true;
  };
  for (size_t root = 0; root < size(); ++root) {
    enter(root);
    while (!stack.empty()) {
      auto &[op, nextOperand] = stack.back();
      if (nextOperand == operands(op).size()) {
        order.push_back(op);
        stack.pop_back();
      } else if (const Definition &operand = operands(op)[nextOperand++]; operand.op) {
        enter(*operand.op);
      }
    }
  }
  return order;
}

/// Looks through each call once, so a chain of calls costs its length. In a cycle of calls, ends at
/// any value of the cycle.
Value DataFlow::findOrigin(Value value) const {
  std::vector<Value> chain;
  while (Value from = findSource(value)) {
    auto [known, isNew] = origins_.insert(value.opaque());
    if (!isNew) {
      value = *known ? *known : value;
      break;
    }
    chain.push_back(value);
    value = from;
  }
  for (Value passed : chain)
    *origins_.find(passed.opaque()) = value;
  return value;
}

DataFlow::Definition DataFlow::definition(Value value) const {
  value = findOrigin(value);
  auto numberOf = [&](Operation op) { return std::optional(*numbers_.find(op.opaque())); };
  if (Operation op = value.definingOp())
    return {value, op.name() != ids_.funcCall ? numberOf(op) : std::nullopt, {}};
  Operation parent = value.ownerBlock().parentOp();
  bool isFunction = functions_.find(parent.opaque());
  return {value, {}, isFunction ? numberOf(parent) : std::nullopt};
}

Value DataFlow::findSource(Value value) const {
  if (Operation call = value.definingOp()) {
    if (call.name() == ids_.manualComputation)
      return call.regions()[0].firstBlock().findYielded(value.number());
    const size_t *callee = callees_.find(call.opaque());
    return callee ? bodyOf(*callee).findYielded(value.number()) : Value();
  }
  Operation parent = value.ownerBlock().parentOp();
  if (parent.name() == ids_.manualComputation)
    return value.number() < parent.operands().size() ? parent.operands()[value.number()] : Value();
  const size_t *function = functions_.find(parent.opaque());
  // Arguments of the other blocks come from branches.
  if (!function || value.ownerBlock() != bodyOf(*function) ||
      calls_.functions()[*function].callers.size() != 1)
    return {};
  Operation call = calls_.callSites()[calls_.functions()[*function].callers[0]].op;
  bool isGiven = call.name() == ids_.funcCall && value.number() < call.operands().size();
  return isGiven ? call.operands()[value.number()] : Value();
}

} // namespace hlotag::analysis
