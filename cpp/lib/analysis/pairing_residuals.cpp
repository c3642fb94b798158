// SPDX-License-Identifier: Apache-2.0
//
// Which operations are not equations of their own, but what the derivative of one needs.
#include "pairing_graph.h"
#include "pairing_rules.h"

#include <algorithm>

namespace hlotag::analysis {

using namespace ir;

static constexpr int kMaxSteps = 16; // from a residual back to its equation

/// Whether nothing but backward operations, other residuals and tangents of the equation uses what
/// the node makes.
bool PairingGraph::isOnlyResidual(NodeId id, NodeId equation) {
  for (ValueId result : results(id))
    for (const Use &use : values_.uses(result))
      if (!isResidualUse(use, id, equation, 0))
        return false;
  return true;
}

/// Whether `update` puts something into a stack of its loop that only the backward pass uses.
bool PairingGraph::isResidualStack(NodeId update) {
  NodeId loop = hostOf(nodes[update]);
  if (loop == kNone || nodes[loop].name != ids_.whileOp || results(update).size() != 1)
    return false;
  for (const Use &use : values_.uses(nodes[update].firstResult)) {
    if (use.user != kNone)
      return false;
    const Yield &yield = values_.yield(use);
    if (values_.region(yield.region).host != loop)
      return false;
    for (const Use &outer : values_.uses(results(loop)[yield.number]))
      if (outer.user == kNone || !nodes[outer.user].isTransposed)
        return false;
  }
  return true;
}

bool PairingGraph::isResidualUse(const Use &use, NodeId id, NodeId equation, int depth) {
  if (NodeId user = use.user; user != kNone) {
    const Node &other = nodes[user];
    if (other.isTransposed && !other.isRematted)
      return true;
    if (other.tangentOf != kNone)
      return other.tangentOf == id || other.tangentOf == equation;
    NodeId main = other.follows == kNone ? user : other.follows;
    if (nodes[main].owner != main)
      return true;
    // What a loop stacks may be a residual, and what it hands to the next iteration is none.
    if (provenance_.text(other.origin->primitive).find("dynamic_update") == std::string_view::npos)
      return false;
    return depth > 0 || isResidualStack(user);
  }
  // A terminator: see what becomes of the value outside.
  const Yield &yield = values_.yield(use);
  NodeId host = values_.region(yield.region).host;
  if (depth > 2 || (host != kNone && nodes[host].name == ids_.whileOp))
    return false;
  auto allResidual = [&](NodeId outer) {
    if (yield.number >= results(outer).size())
      return true;
    for (const Use &next : values_.uses(results(outer)[yield.number]))
      if (!isResidualUse(next, id, equation, depth + 1))
        return false;
    return true;
  };
  if (host != kNone)
    return allResidual(host);
  const std::vector<Operation> &calls =
      provenance_.callsOf(values_.region(yield.region).block.parentOp());
  return !calls.empty() && std::all_of(calls.begin(), calls.end(), [&](Operation call) {
    NodeId caller = nodeOfCall(call);
    return caller != kNone && allResidual(caller);
  });
}

/// Whether the later node may be a residual of `equation`: what it works on must be what the
/// derivative needs. `owners` are those found so far, of nodes before `later`.
bool PairingGraph::isResidual(NodeId equation, NodeId later, const std::vector<NodeId> &owners) {
  TextId primal = nodes[equation].primitive, helper = nodes[later].primitive;
  auto [found, isNew] = residuals_.insert(uint64_t(primal) << 32 | helper);
  if (isNew)
    *found = residualOf(provenance_.text(primal), provenance_.text(helper));
  unsigned from = *found;
  if (!from)
    return false;
  for (ValueId operand : operands(later)) {
    ValueId value = root(operand);
    NodeId maker = values_.maker(value);
    if ((from & kOfResult) && maker == equation)
      return true;
    if ((from & kOfHelper) && maker != kNone && maker > equation && maker < later &&
        owners[maker] == equation)
      return true;
    // A constant, such as the one that is divided by a square, is any equation's.
    if ((from & kOfOperand) && !values_.isConstant(value))
      for (ValueId other : operands(equation))
        if (root(other) == value)
          return true;
  }
  return false;
}

/// Whether both do the same with the same values, constants apart.
bool PairingGraph::isRepeatOf(NodeId id, NodeId other) {
  Span<ValueId> own = operands(id), others = operands(other);
  if (nodes[id].name != nodes[other].name || own.size() != others.size())
    return false;
  bool isAny = false;
  for (size_t i = 0; i < own.size(); ++i) {
    ValueId value = root(own[i]), former = root(others[i]);
    bool areConstant = values_.isConstant(value) && values_.isConstant(former);
    if (!areConstant && value != former)
      return false;
    isAny |= !areConstant;
  }
  return isAny;
}

/// Whether the residual `id` may be another equation's, or none. JAX computes residuals right after
/// their equation: if another one is in between, theirs was dead code. Tangents are no such
/// equation.
bool PairingGraph::isApart(NodeId id, const std::vector<NodeId> &previous) {
  const Node &node = nodes[id];
  if (!node.isTransposed && provenance_.text(node.order->letters).size() > 1)
    return false;
  NodeId before = previous[id];
  // A derivative computes nothing twice: what does was an equation, whose user was dead code.
  for (int step = 0; step < kMaxSteps && before != kNone; ++step, before = previous[before])
    if (nodes[before].owner == node.owner && isRepeatOf(id, before))
      return true;
  before = previous[id];
  for (int step = 0; step < kMaxSteps && before != kNone; ++step, before = previous[before])
    if (before == node.owner || !nodes[before].isOrphan)
      break;
  if (before == kNone || nodes[before].owner != node.owner || nodes[before].isApart)
    return true;
  // A rule that may compute anything says nothing of what works on the result.
  bool isUser = false;
  for (ValueId operand : operands(id))
    isUser |= definition(root(operand)) == node.owner;
  return isUser && usesAnything(provenance_.text(nodes[node.owner].primitive));
}

/// Finds residuals: operations that only the backward pass and other residuals use, and that work
/// on what the derivative of an equation before them needs.
void PairingGraph::findOwners(const FunctionNodes &range) {
  std::vector<NodeId> &previous = scratch_[0], &candidates = scratch_[1], &owners = scratch_[2];
  std::vector<NodeId> &last = lastOfKey_;
  auto mayBe = [&](NodeId id) {
    const Node &node = nodes[id];
    return node.follows == kNone && node.owner == id && node.name != ids_.funcCall &&
           !(node.isTransposed && !node.isRematted);
  };
  auto search = [&](NodeId id, const std::vector<NodeId> &owners) {
    NodeId before = previous[id];
    // Differentiating again puts tangents in between.
    size_t numSteps = 8 * std::max<size_t>(1, provenance_.text(nodes[id].order->letters).size());
    for (size_t step = 0; step < numSteps && before != kNone; ++step, before = previous[before])
      if (nodes[before].isTransposed == nodes[id].isTransposed &&
          nodes[before].isRematted == nodes[id].isRematted && isResidual(before, id, owners))
        return before;
    return kNone;
  };
  auto searchAll = [&] {
    for (NodeId id = range.begin; id < range.end; ++id) {
      NodeId &at = last[nodes[id].key];
      bool isHere = at >= range.begin && at < id; // not from another function, or another search
      previous[id] = isHere ? at : kNone;
      if (nodes[id].follows == kNone && nodes[id].owner == id)
        at = id;
      candidates[id] = mayBe(id) ? search(id, candidates) : kNone;
    }
  };
  searchAll();
  // Tangents are no equations, and use what their equation computes for its derivative.
  bool hasTangents = findTangents(range, candidates);
  if (hasTangents)
    searchAll();
  // A residual is used by residuals of the same equation: last first, after all its users.
  for (NodeId id = range.end; id-- > range.begin;) {
    if (candidates[id] != kNone && isOnlyResidual(id, candidates[id]))
      nodes[id].owner = candidates[id];
    else if (mayBe(id) && !nodes[id].hasRegions)
      nodes[id].isOrphan = isOnlyResidual(id, kNone);
  }
  // Those that rest on an operation that turned out to be an equation of its own are none either.
  for (NodeId id = range.begin; id < range.end; ++id) {
    if (candidates[id] == kNone || nodes[id].owner == id)
      continue;
    owners[id] = search(id, owners);
    nodes[id].owner = owners[id] == kNone ? id : nodes[owners[id]].owner;
    nodes[id].isApart = nodes[id].owner != id && isApart(id, previous);
  }
  auto adopt = [&](NodeId id) {
    if (nodes[id].tangentOf != kNone)
      nodes[id].owner = nodes[nodes[id].tangentOf].owner;
    else if (nodes[id].follows != kNone)
      nodes[id].owner = nodes[nodes[id].follows].owner;
  };
  for (NodeId id = range.end; hasTangents && id-- > range.begin;)
    adopt(id);
  for (auto id = range.followers.rbegin(); !hasTangents && id != range.followers.rend(); ++id)
    adopt(*id);
}

} // namespace hlotag::analysis
