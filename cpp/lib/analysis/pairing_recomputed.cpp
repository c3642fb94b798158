// SPDX-License-Identifier: Apache-2.0
//
// Recognizing rematerialized operations as copies of forward ones.
#include "pairing_aligner.h"

#include <map>
#include <set>

namespace hlotag::analysis {

using namespace ir;

namespace {

/// What an operation computes, at one place: equal ones have equal results.
struct Signature {
  const void *name;
  KeyId key;
  TextId called;                   ///< the primitive of a call, whose copies may call copies
  std::vector<const void *> parts; ///< attributes and operands
  bool operator<(const Signature &o) const {
    return std::tie(key, name, called, parts) < std::tie(o.key, o.name, o.called, o.parts);
  }
};

/// Whether it belongs to its owner for sure, and is no equation of its own or another's.
bool isSurelyOwned(const Node &node) { return !node.isShape && !node.isApart; }

Signature signatureOf(PairingGraph &graph, const Node &node) {
  bool isCall = node.name == graph.ids().funcCall;
  Signature signature{node.name.opaque(), node.key, isCall ? node.origin->primitive : 0,
                      graph.attributesOf(node)};
  for (Value operand : node.op.operands())
    signature.parts.push_back(graph.canonical(operand).opaque());
  return signature;
}

} // namespace

/// A recomputed operation has the name, the place, the attributes and the operands of the one it
/// repeats.
void Aligner::matchRecomputed() {
  auto atMost = [&](const Node &node) {
    return std::min(mostFor(node), call_ == kNone ? 1.0f : graph_.nodes[call_].confidence);
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
    ++runs[{node.name.opaque(), node.key}];
    auto [first, isNew] = computed.emplace(signatureOf(graph_, node), id);
    if (isNew)
      continue;
    // What was computed twice is one value: nothing tells a copy of one from a copy of the other.
    if (node.follows == kNone && node.owner != graph_.nodes[first->second].owner)
      for (NodeId same : {node.owner, graph_.nodes[first->second].owner})
        graph_.nodes[same].isRepeated = true;
    ir::Operation same = graph_.nodes[first->second].op;
    for (Value result : node.op.results())
      if (result.number() < same.results().size())
        graph_.setAlias(result, graph_.canonical(same.results()[result.number()]));
  }
  std::unordered_map<NodeId, float>
      sameValue; // how sure it is that a copy has the original's value
  for (NodeId id : recomputed) {
    Node &node = graph_.nodes[id];
    auto found = computed.find(signatureOf(graph_, node));
    bool isFound = found != computed.end();
    NodeId original = isFound ? found->second : similarUser(node);
    // A function that is called again may also return residuals, after its results.
    bool isCall = graph_.functionOf(node) != nullptr;
    if (original == kNone ||
        (!isCall && graph_.nodes[original].op.results().size() != node.op.results().size()))
      continue;
    node.primal = graph_.nodes[original].owner;
    bool isOnly = runs[{node.name.opaque(), node.key}] == 1;
    float &isSame = sameValue[id] = isFound ? 1.0f : isOnly ? 0.97f : 0.85f;
    // It is no surer than what it works on.
    for (Value operand : node.op.operands())
      if (NodeId maker = graph_.nodeOf(operand.definingOp());
          maker != kNone && graph_.nodes[maker].origin->rematted)
        isSame = std::min(isSame, sameValue.count(maker) ? sameValue[maker] : 0.0f);
    bool isOne = worksOnValues(node) && isSurelyOwned(graph_.nodes[original]);
    node.confidence = std::min({atMost(node), isSame, isOne ? 1.0f : 0.85f});
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
  for (size_t i = recomputed.size(); i-- > 0;)
    if (Node &node = graph_.nodes[recomputed[i]]; originals.count(recomputed[i]))
      seeUsers(node);
  // What is left, where copies can be recognized, are residuals of equations that were copied.
  for (NodeId id : recomputed) {
    Node &node = graph_.nodes[id];
    if (!isExact || node.primal != kNone || node.owner == id)
      continue;
    node.primal = graph_.nodes[node.owner].primal;
    bool isCall = graph_.functionOf(graph_.nodes[node.owner]) != nullptr;
    float ofOwner = isCall ? 0.0f : graph_.nodes[node.owner].confidence;
    node.confidence = node.primal == kNone ? 0.0f
                      : ofOwner < kCertain || !isSurelyOwned(node)
                          ? 0.85f
                          : std::min({atMost(node), 0.95f, ofOwner});
  }
}

/// Whether each operand of the recomputed `node` is that of `other`, as far as that is known: what
/// was recomputed itself and not recognized may be anything.
bool Aligner::mayRepeat(const Node &node, const Node &other) {
  if (node.op.operands().size() != other.op.operands().size() ||
      graph_.attributesOf(node) != graph_.attributesOf(other))
    return false;
  for (intptr_t i = 0; i < node.op.operands().size(); ++i) {
    Value own = graph_.canonical(node.op.operands()[i]);
    NodeId maker = graph_.nodeOf(own.definingOp());
    bool isUnknown = maker != kNone && graph_.nodes[maker].origin->rematted;
    if (!isUnknown && !(own == graph_.canonical(other.op.operands()[i])))
      return false;
  }
  return true;
}

/// What a copy works on is a copy of what its original works on: makes a recomputed `node` as sure
/// as an operation that uses it.
void Aligner::seeUsers(Node &node) {
  if (node.confidence >= kCertain || node.owner != graph_.nodeOf(node.op))
    return;
  for (Value result : node.op.results())
    for (OpOperand use : result.uses()) {
      NodeId user = graph_.nodeOf(use.owner());
      if (user == kNone || !graph_.nodes[user].origin->rematted ||
          graph_.nodes[user].confidence < kCertain)
        continue;
      const Node &copy = graph_.nodes[user];
      Operation original = graph_.nodes[copy.primal].op;
      if (copy.name != original.name() || copy.op.operands().size() != original.operands().size())
        continue;
      NodeId maker = graph_.nodeOf(original.operands()[use.number()].definingOp());
      if (maker == kNone || graph_.nodes[maker].name != node.name ||
          graph_.nodes[maker].origin->primitive != node.origin->primitive ||
          graph_.nodes[maker].key != node.key || graph_.nodes[maker].owner != maker)
        continue;
      node.primal = graph_.nodes[maker].owner;
      node.confidence = copy.confidence;
      return;
    }
}

/// Whether `node` works on anything but constants: those prove nothing.
bool Aligner::worksOnValues(const Node &node) {
  for (Value raw : node.op.operands()) {
    Value value = graph_.canonical(raw);
    if (value.isBlockArgument() || graph_.nodeOf(value.definingOp()) != kNone)
      return true;
  }
  return false;
}

/// Whether what the recomputed `node` works on says that it belongs to `equation`: it is what the
/// equation works on itself, or made of that.
bool Aligner::worksOnItsOwn(const Node &node, NodeId equation) {
  const Node &original = graph_.nodes[equation];
  bool isCopy = node.name == original.name;
  if (isCopy && !mayRepeat(node, original))
    return false;
  for (Value raw : node.op.operands()) {
    Value value = graph_.canonical(raw);
    NodeId maker = graph_.nodeOf(value.definingOp());
    if (maker != kNone && graph_.nodes[maker].origin->rematted) {
      const Node &copy = graph_.nodes[maker];
      if (copy.primal != kNone && copy.confidence >= kCertain &&
          (copy.primal == equation || contains(makersFor(equation), copy.primal)))
        return true;
    } else if ((maker != kNone || value.isBlockArgument()) && worksOn(equation, value)) {
      return true;
    }
  }
  return false;
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
      if (!isForward(other) || other.key != node.key || other.name != node.name ||
          other.origin->primitive != node.origin->primitive || other.constant != node.constant ||
          graph_.canonical(node.op.operands()[use.number()]) != value || !mayRepeat(node, other))
        continue;
      if (similar != kNone)
        return kNone;
      similar = user;
    }
  }
  return similar;
}

} // namespace hlotag::analysis
