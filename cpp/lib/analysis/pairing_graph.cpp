// SPDX-License-Identifier: Apache-2.0
#include "pairing_graph.h"

#include "pairing_rules.h"

#include <algorithm>

namespace hlotag::analysis {

using namespace ir;

PairingGraph::PairingGraph(Operation module, Provenance &provenance)
    : provenance_(provenance), ids_(module.context()) {
  barrier_ = Identifier::get(module.context(), "stablehlo.optimization_barrier");
  manualComputation_ = Identifier::get(module.context(), "sdy.manual_computation");
  dynamicSlice_ = Identifier::get(module.context(), "stablehlo.dynamic_slice");
  broadcast_ = Identifier::get(module.context(), "stablehlo.broadcast_in_dim");
  std::vector<Operation> found;
  walk(module, [&](Operation op) {
    if (op.name() == ids_.func)
      found.push_back(op);
  });
  for (Operation function : found)
    addFunction(function);
  for (const FunctionNodes &range : functions) {
    findFollowers(range);
    findOwners(range);
  }
}

void PairingGraph::addFunction(Operation function) {
  FunctionNodes range{function, NodeId(nodes.size()), 0};
  std::unordered_map<const void *, Value> constants;
  walk(function, [&](Operation op) {
    if (op == function)
      return WalkResult::Advance;
    Identifier name = op.name();
    if (name == ids_.constant) {
      // Equal constants are one value, so that recomputed operations have equal operands.
      Value result = op.results()[0];
      auto [first, isNew] = constants.try_emplace(op.attr("value").opaque(), result);
      if (!isNew)
        setAlias(result, first->second);
      return WalkResult::Skip;
    }
    if (ids_.isNeverTagged(name))
      return WalkResult::Skip;
    Node node;
    node.op = op;
    node.origin = &provenance_.of(op);
    uint64_t key = uint64_t(node.origin->localScope) << 32 | node.origin->sourceKey;
    node.key = keys_.try_emplace(key, KeyId(keys_.size())).first->second;
    for (Value operand : op.operands())
      node.takes.push_back(operand.type().ptr);
    for (Value result : op.results())
      node.makes.push_back(result.type().ptr);
    NodeId id = NodeId(nodes.size());
    node.owner = id;
    *nodeByOp_.insert(op.opaque()).first = id;
    nodes.push_back(node);
    if (name == barrier_)
      for (Value result : op.results())
        setAlias(result, canonical(op.operands()[result.number()]));
    if (name == ids_.whileOp)
      aliasInvariants(op);
    else if (name == ids_.funcCall || name == dynamicSlice_)
      aliasUnstacked(op);
    else if (provenance_.text(node.origin->primitive) == "squeeze" &&
             aliases_.find(op.operands()[0].opaque()))
      setAlias(op.results()[0], canonical(op.operands()[0]));
    bool isControlFlow = name == ids_.whileOp || name == ids_.caseOp || name == ids_.ifOp ||
                         name == manualComputation_;
    if (name == manualComputation_)
      for (Value argument : op.regions()[0].firstBlock().arguments())
        setAlias(argument, canonical(op.operands()[argument.number()]));
    if (name == manualComputation_)
      for (Value result : op.results())
        setAlias(result, op.regions()[0].firstBlock().terminator().operands()[result.number()]);
    return isControlFlow ? WalkResult::Advance : WalkResult::Skip;
  });
  range.end = NodeId(nodes.size());
  for (NodeId id = range.end; id-- > range.begin;) {
    NodeId parent = nodeOf(nodes[id].op.parent());
    nodes[id].last = std::max(nodes[id].last, id);
    if (parent != kNone)
      nodes[parent].last = std::max(nodes[parent].last, nodes[id].last);
  }
  *functionByOp_.insert(function.opaque()).first = uint32_t(functions.size());
  functions.push_back(range);
}

/// What a loop hands on unchanged is what it was given.
void PairingGraph::aliasInvariants(Operation loop) {
  for (Region region : loop.regions())
    for (Value argument : region.firstBlock().arguments()) {
      intptr_t number = argument.number();
      Operation end = loop.regions()[1].firstBlock().terminator();
      Value carried = loop.regions()[1].firstBlock().arguments()[number];
      if (end.operands()[number] == carried)
        setAlias(argument, canonical(loop.operands()[number]));
    }
}

/// The forward loop of a scan stacks residuals, `stack[i] = x`; in the backward loop, `stack[i]`
/// is that `x`.
void PairingGraph::aliasUnstacked(Operation op) {
  if (op.operands().size() < 2 || op.results().size() != 1)
    return;
  Value stack = canonical(op.operands()[0]);
  Operation loop = stack.definingOp();
  if (!loop || loop.name() != ids_.whileOp)
    return;
  Operation end = loop.regions()[1].firstBlock().terminator();
  Operation update = end.operands()[stack.number()].definingOp();
  if (!update || update.operands().size() < 3)
    return;
  Value carried = loop.regions()[1].firstBlock().arguments()[stack.number()];
  if (update.operands()[0] == carried)
    setAlias(op.results()[0], canonical(update.operands()[1]));
}

NodeId PairingGraph::nodeOf(Operation op) {
  NodeId *found = op ? nodeByOp_.find(op.opaque()) : nullptr;
  return found ? *found : kNone;
}

NodeId PairingGraph::definition(Value value) { return nodeOf(canonical(value).definingOp()); }

Value PairingGraph::canonical(Value value) {
  MlirValue *alias = aliases_.find(value.opaque());
  return alias ? Value(*alias) : value;
}

void PairingGraph::setAlias(Value copy, Value original) {
  *aliases_.insert(copy.opaque()).first = original.raw();
}

const FunctionNodes *PairingGraph::functionOf(Operation call) {
  if (call.name() != ids_.funcCall)
    return nullptr;
  FlatSymbolRefAttr callee = call.attrOf<FlatSymbolRefAttr>("callee");
  Operation function = callee ? provenance_.function(callee.value()) : Operation();
  uint32_t *index = function ? functionByOp_.find(function.opaque()) : nullptr;
  return index ? &functions[*index] : nullptr;
}

/// Whether `op` is what `primitive` lowers to and not a helper: JAX and StableHLO name things
/// alike.
static bool isMainOp(Operation op, std::string_view primitive) {
  std::string_view name = op.name().str();
  name.remove_prefix(std::min(name.size(), name.find('.') + 1));
  return primitive.size() < 3 || name.substr(0, 3) == primitive.substr(0, 3) || name == "call";
}

/// One equation may lower to several operations, the last of which makes its result: implicit
/// broadcasts come before it, at the same location.
void PairingGraph::findFollowers(const FunctionNodes &range) {
  for (NodeId id = range.begin; id + 1 < range.end; ++id) {
    Node &node = nodes[id];
    if (node.op.results().size() != 1 || nodes[id + 1].origin != node.origin ||
        isMainOp(node.op, provenance_.text(node.origin->primitive)))
      continue;
    for (OpOperand use : node.op.results()[0].uses()) {
      NodeId user = nodeOf(use.owner());
      if (user != kNone && user > id && nodes[user].origin == node.origin) {
        node.follows = user;
        break;
      }
    }
  }
  for (NodeId id = range.end; id-- > range.begin;)
    if (NodeId next = nodes[id].follows; next != kNone && nodes[next].follows != kNone)
      nodes[id].follows = nodes[next].follows;
  for (NodeId id = range.begin; id < range.end; ++id) {
    if (nodes[id].follows == kNone || nodes[id].takes.size() != 1)
      continue;
    nodes[nodes[id].follows].takes.push_back(nodes[id].takes[0]);
    Value value = canonical(nodes[id].op.operands()[0]);
    Operation maker = value.definingOp();
    if (maker && maker.name() == broadcast_)
      maker = canonical(maker.operands()[0]).definingOp();
    if (maker && maker.name() == ids_.constant)
      nodes[nodes[id].follows].constant = maker.attr("value").opaque();
  }
}

/// Whether nothing but backward operations and other residuals uses what the node makes.
bool PairingGraph::isOnlyResidual(NodeId id) {
  for (Value result : nodes[id].op.results())
    for (OpOperand use : result.uses())
      if (!isResidualUse(use, id, 0))
        return false;
  return true;
}

bool PairingGraph::isResidualUse(OpOperand use, NodeId id, int depth) {
  Operation owner = use.owner();
  NodeId user = nodeOf(owner);
  if (user != kNone) {
    const Node &other = nodes[user];
    if (other.origin->transposed && !other.origin->rematted)
      return true;
    NodeId main = other.follows == kNone ? user : other.follows;
    // What a loop stacks may be a residual, and what it hands to the next iteration is none.
    bool isStacked =
        depth > 0 &&
        provenance_.text(other.origin->primitive).find("dynamic_update") != std::string_view::npos;
    return nodes[main].owner != main || isStacked;
  }
  // A terminator: see what becomes of the value outside.
  Operation parent = owner.parent();
  if (!parent || parent.name() == ids_.whileOp || depth > 2)
    return false;
  auto allResidual = [&](Operation outer) {
    if (intptr_t(use.number()) >= outer.results().size())
      return true;
    for (OpOperand next : outer.results()[use.number()].uses())
      if (!isResidualUse(next, id, depth + 1))
        return false;
    return true;
  };
  if (parent.name() != ids_.func)
    return allResidual(parent);
  const std::vector<Operation> &calls = provenance_.callsOf(parent);
  return !calls.empty() && std::all_of(calls.begin(), calls.end(), allResidual);
}

/// Whether the later node works on what `equation` takes or makes, or on another residual of it.
bool PairingGraph::sharesValue(NodeId equation, NodeId later) {
  std::string_view primitive = provenance_.text(nodes[equation].origin->primitive);
  for (Value raw : nodes[later].op.operands()) {
    Value value = canonical(raw);
    NodeId maker = nodeOf(value.definingOp());
    if (maker == equation)
      return true;
    if (maker != kNone && maker > equation && nodes[maker].key == nodes[later].key &&
        isResidualOf(primitive, provenance_.text(nodes[maker].origin->primitive)))
      return true;
    for (Value operand : nodes[equation].op.operands())
      if (canonical(operand) == value)
        return true;
  }
  return false;
}

/// Finds residuals, last first: a residual is used by residuals of the same equation.
void PairingGraph::findOwners(const FunctionNodes &range) {
  // Candidates in order, by key, so that the equation before is at hand.
  std::vector<NodeId> previous(range.end - range.begin, kNone);
  std::unordered_map<KeyId, NodeId> last;
  for (NodeId id = range.begin; id < range.end; ++id) {
    NodeId &at = last.try_emplace(nodes[id].key, kNone).first->second;
    previous[id - range.begin] = at;
    if (nodes[id].follows == kNone)
      at = id;
  }
  for (NodeId id = range.end; id-- > range.begin;) {
    Node &node = nodes[id];
    if (node.follows != kNone || node.op.name() == ids_.funcCall ||
        (node.origin->transposed && !node.origin->rematted))
      continue;
    std::string_view primitive = provenance_.text(node.origin->primitive);
    NodeId before = previous[id - range.begin];
    for (int step = 0; step < 6 && before != kNone; ++step) {
      if (isResidualOf(provenance_.text(nodes[before].origin->primitive), primitive) &&
          nodes[before].origin->transposed == node.origin->transposed &&
          nodes[before].origin->rematted == node.origin->rematted && sharesValue(before, id) &&
          isOnlyResidual(id)) {
        node.owner = before;
        break;
      }
      before = previous[before - range.begin];
    }
  }
  // Residuals of residuals belong to the equation at the end of the chain.
  for (NodeId id = range.begin; id < range.end; ++id)
    nodes[id].owner = nodes[nodes[id].owner].owner;
  for (NodeId id = range.end; id-- > range.begin;)
    if (nodes[id].follows != kNone)
      nodes[id].owner = nodes[nodes[id].follows].owner;
}

} // namespace hlotag::analysis
