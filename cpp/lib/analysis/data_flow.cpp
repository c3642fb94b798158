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

std::vector<size_t> DataFlow::values() const {
  struct Frame {
    size_t op;
    size_t nextOperand;
  };
  constexpr size_t kUnknown = size_t(-1), kOpen = size_t(-2);
  ir::Identifier rng = ir::Identifier::get(operations_[0].op.context(), "stablehlo.rng");
  std::vector<size_t> values(size(), kUnknown);
  std::map<std::vector<const void *>, size_t> known;
  auto keyOf = [&](size_t number) {
    auto [op, name, numNested, hasRegions] = operations_[number + 1];
    bool isOwn = hasRegions || name == ids_.funcCall || name == ids_.customCall || name == rng;
    std::vector<const void *> key{isOwn ? op.opaque() : name.opaque()};
    if (isOwn)
      return key;
    for (const Definition &operand : operands(number)) {
      // A value on its way round a cycle of calls is only equal to itself.
      bool isValued = operand.op && values[*operand.op] != kOpen;
      key.push_back(isValued ? reinterpret_cast<const void *>(values[*operand.op])
                             : operand.value.opaque());
      key.push_back(reinterpret_cast<const void *>(isValued ? operand.value.number() : -1));
    }
    for (ir::NamedAttribute attr : op.attributes()) {
      if (attr.name == ids_.frontendAttributes || attr.name.str() == ir::kOrigins)
        continue;
      key.push_back(attr.name.opaque());
      key.push_back(attr.value.opaque());
    }
    for (Value result : op.results())
      key.push_back(result.type().ptr);
    return key;
  };
  // Operands before users, without recursion: a chain of operations may be as long as the program.
  std::vector<Frame> stack;
  for (size_t root = 0; root < size(); ++root) {
    if (values[root] == kUnknown)
      stack.push_back({root, 0});
    while (!stack.empty()) {
      auto &[number, nextOperand] = stack.back();
      values[number] = kOpen;
      if (nextOperand == operands(number).size()) {
        values[number] = known.emplace(keyOf(number), known.size()).first->second;
        stack.pop_back();
        continue;
      }
      const Definition &operand = operands(number)[nextOperand++];
      if (operand.op && values[*operand.op] == kUnknown)
        stack.push_back({*operand.op, 0});
    }
  }
  return values;
}

DataFlow::Definition DataFlow::definition(Value value) const {
  // Not for ever round a cycle of calls.
  constexpr int kHops = 64;
  for (int hop = 0; hop < kHops; ++hop) {
    Value from = source(value);
    if (!from)
      break;
    value = from;
  }
  Operation op = value.definingOp();
  bool isMade = op && op.name() != ids_.funcCall;
  return {value, isMade ? std::optional(*numbers_.find(op.opaque())) : std::nullopt};
}

Value DataFlow::source(Value value) const {
  if (Operation call = value.definingOp()) {
    const size_t *callee = callees_.find(call.opaque());
    return callee ? bodyOf(*callee).yielded(value.number()) : Value();
  }
  const size_t *function = functions_.find(value.ownerBlock().parentOp().opaque());
  // Branches give the other blocks their arguments.
  if (!function || value.ownerBlock() != bodyOf(*function) ||
      calls_.functions()[*function].callers.size() != 1)
    return {};
  Operation call = calls_.callSites()[calls_.functions()[*function].callers[0]].op;
  bool isGiven = call.name() == ids_.funcCall && value.number() < call.operands().size();
  return isGiven ? call.operands()[value.number()] : Value();
}

} // namespace hlotag::analysis
