// SPDX-License-Identifier: Apache-2.0
//
// Recognizing rematerialized operations as copies of forward ones.
#include "pairing_aligner.h"

#include <map>
#include <set>

namespace hlotag::analysis {

using namespace ir;

/// A recomputed operation has the name, the place and the operands of the one it repeats.
void Aligner::matchRecomputed() {
  struct Signature {
    const void *name;
    KeyId key;
    std::vector<const void *> operands;
    bool operator<(const Signature &o) const {
      return std::tie(key, name, operands) < std::tie(o.key, o.name, o.operands);
    }
  };
  auto signatureOf = [&](const Node &node) {
    Signature signature{node.op.name().opaque(), node.key, {}};
    for (Value operand : node.op.operands())
      signature.operands.push_back(graph_.canonical(operand).opaque());
    return signature;
  };
  std::vector<NodeId> recomputed;
  std::set<KeyId> keys;
  for (NodeId id = backward_.begin; id < backward_.end; ++id)
    if (graph_.nodes[id].origin->rematted) {
      recomputed.push_back(id);
      keys.insert(graph_.nodes[id].key);
    }
  std::map<Signature, NodeId> computed;
  std::map<std::pair<const void *, KeyId>, int> runs; // of a line, by operation
  bool isExact = false;
  std::unordered_map<NodeId, int> copies;
  std::unordered_map<NodeId, NodeId> originals, lastCopy;
  for (NodeId id = forward_.begin; id < forward_.end && !recomputed.empty(); ++id) {
    const Node &node = graph_.nodes[id];
    if (!isForward(node) || !keys.count(node.key))
      continue;
    ++runs[{node.op.name().opaque(), node.key}];
    auto [first, isNew] = computed.emplace(signatureOf(node), id);
    // Broadcast constants are the same value wherever the same line is run.
    if (!isNew && node.follows != kNone && node.op.results().size() == 1)
      graph_.setAlias(node.op.results()[0],
                      graph_.canonical(graph_.nodes[first->second].op.results()[0]));
  }
  for (NodeId id : recomputed) {
    Node &node = graph_.nodes[id];
    auto found = computed.find(signatureOf(node));
    NodeId original = found == computed.end() ? similarUser(node) : found->second;
    // A function that is called again may also return residuals, after its results.
    bool isCall = graph_.functionOf(node.op) != nullptr;
    if (original == kNone ||
        (!isCall && graph_.nodes[original].op.results().size() != node.op.results().size()))
      continue;
    node.primal = graph_.nodes[original].owner;
    bool isOnly = runs[{node.op.name().opaque(), node.key}] == 1;
    node.confidence = std::min(mostFor(node), found != computed.end() ? 1.0f
                                              : isOnly                ? 0.97f
                                                                      : 0.85f);
    // It is no surer than what it works on.
    for (Value operand : node.op.operands())
      if (NodeId maker = graph_.nodeOf(operand.definingOp());
          maker != kNone && graph_.nodes[maker].origin->rematted)
        node.confidence = std::min(node.confidence, graph_.nodes[maker].confidence);
    isExact = true;
    if (node.follows == kNone)
      ++copies[originals[id] = original], lastCopy[original] = id;
    intptr_t count = graph_.nodes[original].op.results().size();
    for (Value result : node.op.results())
      if (result.number() < count)
        graph_.setAlias(result, graph_.nodes[original].op.results()[result.number()]);
  }
  // An equation may compute as a residual what another one computes as its result: of two copies
  // of one operation, that which only serves the backward pass is the residual.
  for (NodeId id : recomputed) {
    Node &node = graph_.nodes[id];
    if (!originals.count(id) || copies[originals[id]] < 2)
      continue;
    node.confidence = std::min(node.confidence, 0.85f);
    // A residual comes right after its equation, before the operations that follow.
    if (node.owner == id || lastCopy[originals[id]] == id)
      continue;
    node.primal = kNone;
    node.confidence = 0;
  }
  // What is left, where copies can be recognized, are residuals of equations that were copied.
  for (NodeId id : recomputed) {
    Node &node = graph_.nodes[id];
    if (!isExact || node.primal != kNone || node.owner == id)
      continue;
    node.primal = graph_.nodes[node.owner].primal;
    bool isCall = graph_.functionOf(graph_.nodes[node.owner].op) != nullptr;
    node.confidence = node.primal == kNone ? 0.0f : isCall ? 0.85f : std::min(mostFor(node), 0.95f);
  }
}

/// The one forward node that does the same as `node` at the same place with one of its operands,
/// if the others cannot be compared; or kNone.
NodeId Aligner::similarUser(const Node &node) {
  NodeId similar = kNone;
  for (Value raw : node.op.operands()) {
    Value value = graph_.canonical(raw);
    NodeId maker = graph_.nodeOf(value.definingOp());
    if (maker == kNone || !isForward(graph_.nodes[maker]) || graph_.nodes[maker].follows != kNone)
      continue;
    size_t count = 0;
    for (OpOperand use : value.uses()) {
      NodeId user = graph_.nodeOf(use.owner());
      if (++count > kMaxUses || user == kNone || user == similar)
        continue;
      const Node &other = graph_.nodes[user];
      if (!isForward(other) || other.key != node.key || other.op.name() != node.op.name() ||
          other.origin->primitive != node.origin->primitive || other.constant != node.constant ||
          graph_.canonical(node.op.operands()[use.number()]) != value)
        continue;
      if (similar != kNone)
        return kNone;
      similar = user;
    }
  }
  return similar;
}

} // namespace hlotag::analysis
