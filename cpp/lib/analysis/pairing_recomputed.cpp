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
  TextId called; ///< the primitive of a call, whose copies may call copies
  std::vector<ValueId> operands;
  std::vector<const void *> attributes;
  bool operator<(const Signature &o) const {
    return std::tie(key, name, called, operands, attributes) <
           std::tie(o.key, o.name, o.called, o.operands, o.attributes);
  }
};

/// Whether it belongs to its owner for sure, and is no equation of its own or another's.
bool isSurelyOwned(const Node &node) { return !node.isShape && !node.isApart; }

Signature signatureOf(PairingGraph &graph, NodeId id) {
  const Node &node = graph.nodes[id];
  bool isCall = node.name == graph.ids().funcCall;
  Signature signature{node.name.opaque(),
                      node.key,
                      isCall ? node.origin->primitive : 0,
                      {},
                      graph.attributesOf(node)};
  for (ValueId operand : graph.operands(id))
    signature.operands.push_back(graph.values().canonical(operand));
  return signature;
}

} // namespace

/// A recomputed operation has the name, the place, the attributes and the operands of the one it
/// repeats.
void Aligner::matchRecomputed() {
  auto atMost = [&](const Node &node) {
    return std::min(mostFor(node), call_ == kNone ? 1.0f : graph_.nodes[call_].confidence);
  };
  auto aliasResults = [&](NodeId copy, NodeId original) {
    size_t count = std::min(graph_.results(copy).size(), graph_.results(original).size());
    for (size_t i = 0; i < count; ++i)
      values_.setAlias(graph_.results(copy)[i], graph_.results(original)[i]);
  };
  std::vector<NodeId> recomputed;
  std::set<KeyId> keys;
  for (NodeId id : backward_.derived)
    if (graph_.nodes[id].isRematted) {
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
    auto [first, isNew] = computed.emplace(signatureOf(graph_, id), id);
    if (isNew)
      continue;
    // What was computed twice is one value: nothing tells a copy of one from a copy of the other.
    if (node.follows == kNone && node.owner != graph_.nodes[first->second].owner)
      for (NodeId same : {node.owner, graph_.nodes[first->second].owner})
        graph_.nodes[same].isRepeated = true;
    aliasResults(id, first->second);
  }
  std::unordered_map<NodeId, float>
      sameValue; // how sure it is that a copy has the original's value
  for (NodeId id : recomputed) {
    Node &node = graph_.nodes[id];
    auto found = computed.find(signatureOf(graph_, id));
    bool isFound = found != computed.end();
    NodeId original = isFound ? found->second : similarUser(id);
    // A function that is called again may also return residuals, after its results.
    bool isCall = graph_.functionOf(node) != nullptr;
    if (original == kNone ||
        (!isCall && graph_.results(original).size() != graph_.results(id).size()))
      continue;
    node.primal = graph_.nodes[original].owner;
    bool isOnly = runs[{node.name.opaque(), node.key}] == 1;
    float &isSame = sameValue[id] = isFound ? 1.0f : isOnly ? 0.97f : 0.85f;
    // It is no surer than what it works on.
    for (ValueId operand : graph_.operands(id))
      if (NodeId maker = values_.maker(operand); maker != kNone && graph_.nodes[maker].isRematted)
        isSame = std::min(isSame, sameValue.count(maker) ? sameValue[maker] : 0.0f);
    bool isOne = worksOnValues(id) && isSurelyOwned(graph_.nodes[original]);
    node.confidence = std::min({atMost(node), isSame, isOne ? 1.0f : 0.85f});
    isExact = true;
    if (node.follows == kNone)
      ++copies[originals[id] = original], lastCopy[original] = id;
    aliasResults(id, original);
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
    if (originals.count(recomputed[i]))
      seeUsers(recomputed[i]);
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

/// Whether each operand of the recomputed node `id` is that of `other`, as far as that is known:
/// what was recomputed itself and not recognized may be anything.
bool Aligner::mayRepeat(NodeId id, NodeId other) {
  Span<ValueId> operands = graph_.operands(id), others = graph_.operands(other);
  if (operands.size() != others.size() ||
      graph_.attributesOf(graph_.nodes[id]) != graph_.attributesOf(graph_.nodes[other]))
    return false;
  for (size_t i = 0; i < operands.size(); ++i) {
    ValueId own = values_.canonical(operands[i]);
    NodeId maker = values_.maker(own);
    bool isUnknown = maker != kNone && graph_.nodes[maker].isRematted;
    if (!isUnknown && own != values_.canonical(others[i]))
      return false;
  }
  return true;
}

/// What a copy works on is a copy of what its original works on: makes a recomputed node as sure
/// as an operation that uses it.
void Aligner::seeUsers(NodeId id) {
  Node &node = graph_.nodes[id];
  if (node.confidence >= kCertain || node.owner != id)
    return;
  for (ValueId result : graph_.results(id))
    for (const Use &use : values_.uses(result)) {
      if (use.user == kNone)
        continue;
      const Node &copy = graph_.nodes[use.user];
      if (!copy.isRematted || copy.confidence < kCertain)
        continue;
      Span<ValueId> originals = graph_.operands(copy.primal);
      if (copy.name != graph_.nodes[copy.primal].name ||
          graph_.operands(use.user).size() != originals.size())
        continue;
      NodeId maker = values_.maker(originals[use.number]);
      if (maker == kNone || graph_.nodes[maker].name != node.name ||
          graph_.nodes[maker].origin->primitive != node.origin->primitive ||
          graph_.nodes[maker].key != node.key || graph_.nodes[maker].owner != maker)
        continue;
      node.primal = graph_.nodes[maker].owner;
      node.confidence = copy.confidence;
      return;
    }
}

/// Whether a node works on anything but constants: those prove nothing.
bool Aligner::worksOnValues(NodeId id) {
  Span<ValueId> operands = graph_.operands(id);
  return std::any_of(operands.begin(), operands.end(), [&](ValueId operand) {
    return !values_.isConstant(values_.canonical(operand));
  });
}

/// Whether what the recomputed node `id` works on says that it belongs to `equation`: it is what
/// the equation works on itself, or made of that.
bool Aligner::worksOnItsOwn(NodeId id, NodeId equation) {
  bool isCopy = graph_.nodes[id].name == graph_.nodes[equation].name;
  if (isCopy && !mayRepeat(id, equation))
    return false;
  for (ValueId operand : graph_.operands(id)) {
    ValueId value = values_.canonical(operand);
    NodeId maker = values_.maker(value);
    if (maker != kNone && graph_.nodes[maker].isRematted) {
      const Node &copy = graph_.nodes[maker];
      if (copy.primal != kNone && copy.confidence >= kCertain &&
          (copy.primal == equation || contains(makersFor(equation), copy.primal)))
        return true;
    } else if (!values_.isConstant(value) && worksOn(equation, value)) {
      return true;
    }
  }
  return false;
}

/// The one forward node that does the same as node `id` at the same place with one of its operands,
/// if the others cannot be compared; or kNone.
NodeId Aligner::similarUser(NodeId id) {
  const Node &node = graph_.nodes[id];
  NodeId similar = kNone;
  for (ValueId operand : graph_.operands(id)) {
    ValueId value = values_.canonical(operand);
    NodeId maker = values_.maker(value);
    if (maker == kNone || !isForward(graph_.nodes[maker]) || graph_.nodes[maker].follows != kNone)
      continue;
    size_t count = 0;
    for (const Use &use : values_.uses(value)) {
      if (++count > kMaxUses || use.user == kNone || use.user == similar)
        continue;
      const Node &other = graph_.nodes[use.user];
      if (!isForward(other) || other.key != node.key || other.name != node.name ||
          other.origin->primitive != node.origin->primitive || other.constant != node.constant ||
          use.number >= graph_.operands(id).size() ||
          values_.canonical(graph_.operands(id)[use.number]) != value || !mayRepeat(id, use.user))
        continue;
      if (similar != kNone)
        return kNone;
      similar = use.user;
    }
  }
  return similar;
}

} // namespace hlotag::analysis
