// SPDX-License-Identifier: Apache-2.0
#include "hlotag/analysis/data_flow.h"

#include <map>

namespace hlotag::analysis {

using ir::Operation;
using ir::Value;

DataFlow::DataFlow(const ir::OpList &operations, const ir::OpIds &ids)
    : operations_(operations), ids_(ids), operands_(operations.size() - 1) {
  for (size_t i = 1; i < operations.size(); ++i) {
    auto [op, name, numNested, hasRegions] = operations[i];
    *numbers_.insert(op.opaque()).first = i - 1;
    if (name == ids.func) {
      if (auto symbol = op.attrOf<ir::StringAttr>("sym_name"))
        functions_[symbol.value()].op = op;
    } else if (name == ids.funcCall) {
      if (auto callee = op.attrOf<ir::FlatSymbolRefAttr>("callee"))
        functions_[callee.value()].calls.push_back(op);
    }
  }
  for (size_t number = 0; number < size(); ++number)
    for (Value value : operations[number + 1].op.operands())
      operands_[number].push_back(definition(value));
}

std::vector<DataFlow::Definition> DataFlow::results() const {
  std::vector<Definition> found;
  auto main = functions_.find("main");
  if (main == functions_.end() || !main->second.op)
    return found;
  if (Operation end = main->second.op.regions()[0].firstBlock().terminator())
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
    if (call.name() != ids_.funcCall)
      return {};
    const Function *callee = find(call, "callee");
    return callee && callee->op ? callee->op.regions()[0].firstBlock().yielded(value.number())
                                : Value();
  }
  Operation owner = value.ownerBlock().parentOp();
  const Function *function = owner.name() == ids_.func ? find(owner, "sym_name") : nullptr;
  return function && function->calls.size() == 1 ? function->calls[0].operands()[value.number()]
                                                 : Value();
}

const DataFlow::Function *DataFlow::find(Operation op, std::string_view symbol) const {
  ir::Attribute attr = op.attr(symbol);
  auto text = ir::dynCast<ir::StringAttr>(attr);
  auto reference = ir::dynCast<ir::FlatSymbolRefAttr>(attr);
  auto found = functions_.find(text ? text.value() : reference ? reference.value() : "");
  return found == functions_.end() ? nullptr : &found->second;
}

} // namespace hlotag::analysis
