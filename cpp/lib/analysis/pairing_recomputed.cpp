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
  std::vector<TypeId> types; ///< but for a call, which may return residuals too
  bool operator<(const Signature &o) const {
    return std::tie(key, name, called, operands, attributes, types) <
           std::tie(o.key, o.name, o.called, o.operands, o.attributes, o.types);
  }
};

/// Whether it belongs to its owner for sure, and is no equation of its own or another's.
bool isSurelyOwned(const Node &node) { return !node.isShape && !node.isApart; }

/// The constant that `value` is everywhere, if it is; or `value`.
ValueId splatOr(PairingGraph &graph, ValueId value) {
  NodeId maker = graph.values().maker(value);
  if (maker == kNone || graph.nodes[maker].follows == kNone || graph.operands(maker).size() != 1)
    return value;
  ValueId only = graph.values().canonical(graph.operands(maker)[0]);
  return graph.values().isConstant(only) ? only : value;
}

Signature signatureOf(PairingGraph &graph, NodeId id) {
  const Node &node = graph.nodes[id];
  bool isCall = node.name == graph.ids().funcCall;
  Signature signature{node.name.opaque(),       node.key, isCall ? node.origin->primitive : 0, {},
                      graph.attributesOf(node), {}};
  if (!isCall)
    signature.types.assign(graph.makes(node).begin(), graph.makes(node).end());
  for (ValueId operand : graph.operands(id))
    signature.operands.push_back(splatOr(graph, graph.values().canonical(operand)));
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
  std::set<KeyId> keys, keysOutside;
  std::vector<KeyId> places; // of one
  for (NodeId id : backward_.derived)
    if (graph_.nodes[id].isRematted) {
      recomputed.push_back(id);
      placesOf(graph_.nodes[id], places);
      keys.insert(places.front());
      keysOutside.insert(places.begin(), places.end());
    }
  if (recomputed.empty())
    return;
  std::map<Signature, NodeId> computed, outside;      // of the loop that has copies
  std::map<std::pair<const void *, KeyId>, int> runs; // of a line, by operation
  bool isExact = false;
  std::unordered_map<NodeId, int> copies;
  std::unordered_map<NodeId, NodeId> originals, lastCopy;
  auto see = [&](NodeId id, std::map<Signature, NodeId> &seen) {
    const Node &node = graph_.nodes[id];
    auto [first, isNew] = seen.emplace(signatureOf(graph_, id), id);
    if (isNew)
      return;
    // What was computed twice is one value: nothing tells a copy of one from a copy of the other.
    if (node.follows == kNone && node.owner != graph_.nodes[first->second].owner)
      for (NodeId same : {node.owner, graph_.nodes[first->second].owner})
        graph_.nodes[same].isRepeated = true;
    aliasResults(id, first->second);
  };
  // What JAX takes out of a loop has no derivative.
  auto seeOutside = [&](NodeId id) {
    const Node &node = graph_.nodes[id];
    if (!isForward(node) || node.order->letters || !keysOutside.count(node.key))
      return;
    hoisted_.insert({node.name.opaque(), node.key});
    see(id, outside);
  };
  if (const FunctionNodes *around = aroundLoop())
    for (NodeId id = around->begin; id < around->end; ++id)
      seeOutside(id);
  for (NodeId id = forward_.begin; id < forward_.end; ++id) {
    const Node &node = graph_.nodes[id];
    if (isForward(node) && keys.count(node.key)) {
      ++runs[{node.name.opaque(), node.key}];
      see(id, computed);
    } else {
      seeOutside(id);
    }
  }
  auto repeatedBy = [&](NodeId id) {
    Signature signature = signatureOf(graph_, id);
    if (auto found = computed.find(signature); found != computed.end())
      return found->second;
    placesOf(graph_.nodes[id], places);
    for (KeyId place : places) {
      signature.key = place;
      if (auto found = outside.find(signature); found != outside.end())
        return found->second;
    }
    return kNone;
  };
  std::unordered_map<NodeId, float>
      sameValue; // how sure it is that a copy has the original's value
  for (NodeId id : recomputed) {
    Node &node = graph_.nodes[id];
    NodeId original = repeatedBy(id);
    bool isFound = original != kNone;
    if (!isFound)
      original = similarUser(id);
    // A function that is called again may also return residuals, after its results.
    bool isCall = graph_.functionOf(node) != nullptr;
    if (original == kNone ||
        (!isCall && graph_.results(original).size() != graph_.results(id).size()))
      continue;
    node.primal = graph_.nodes[original].owner;
    bool isOnly = runs[{node.name.opaque(), node.key}] == 1 && !mayBeHoisted(node);
    float &isSame = sameValue[id] = isFound ? 1.0f : isOnly ? 0.97f : 0.85f;
    // It is no surer than what it works on.
    for (ValueId operand : graph_.operands(id))
      if (NodeId maker = values_.maker(operand); maker != kNone && graph_.nodes[maker].isRematted)
        isSame = std::min(isSame, sameValue.count(maker) ? sameValue[maker] : 0.0f);
    // What is outside of the loop may also be what the program calls there.
    bool isOne = worksOnValues(id) && isSurelyOwned(graph_.nodes[original]) && !isHoisted(node);
    node.confidence = std::min({atMost(node), isSame, isOne ? 1.0f : 0.85f});
    isExact = true;
    originals[id] = original;
    if (node.follows == kNone)
      ++copies[original], lastCopy[original] = id;
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
      seeUsers(recomputed[i], originals);
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

/// The places that a node may have in the forward code, its own first. JAX takes out of a loop what
/// is the same in each iteration, but computes it again in the loop.
void Aligner::placesOf(const Node &node, std::vector<KeyId> &places) {
  places.assign(1, node.key);
  graph_.addKeysOutside(node, places);
}

/// Whether something that JAX took out of the loop may be what a node repeats.
bool Aligner::mayBeHoisted(const Node &node) {
  std::vector<KeyId> places;
  placesOf(node, places);
  return std::any_of(places.begin(), places.end(),
                     [&](KeyId place) { return hoisted_.count({node.name.opaque(), place}) > 0; });
}

/// The function with the loop that the forward function is the body of; or null.
const FunctionNodes *Aligner::aroundLoop() const {
  NodeId call = call_ == kNone ? kNone : graph_.nodes[call_].primal;
  NodeId host = call == kNone ? kNone : graph_.parentOf(graph_.nodes[call]);
  bool isInLoop = host != kNone && graph_.nodes[host].name == graph_.ids().whileOp;
  return isInLoop ? &graph_.functionAround(call) : nullptr;
}

/// Whether each operand of the recomputed node `id` is that of `other`, as far as that is known:
/// what was recomputed itself and not recognized may be anything.
bool Aligner::mayRepeat(NodeId id, NodeId other) {
  Span<ValueId> operands = graph_.operands(id), others = graph_.operands(other);
  if (operands.size() != others.size() ||
      graph_.attributesOf(graph_.nodes[id]) != graph_.attributesOf(graph_.nodes[other]))
    return false;
  bool isCall = graph_.functionOf(graph_.nodes[id]) != nullptr;
  if (!isCall && graph_.makes(graph_.nodes[id]) != graph_.makes(graph_.nodes[other]))
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
/// as an operation that uses it. Several equations may broadcast one value alike, so what serves
/// another operation is a copy of what serves the original of that.
void Aligner::seeUsers(NodeId id, std::unordered_map<NodeId, NodeId> &originals) {
  Node &node = graph_.nodes[id];
  bool serves = node.follows != kNone;
  if (!serves && (node.confidence >= kCertain || node.owner != id))
    return;
  if (serves)
    originals.erase(id);
  std::vector<KeyId> places;
  placesOf(node, places);
  for (ValueId result : graph_.results(id))
    for (const Use &use : values_.uses(result)) {
      auto found = use.user == kNone ? originals.end() : originals.find(use.user);
      if (found == originals.end())
        continue;
      const Node &copy = graph_.nodes[use.user];
      const Node &original = graph_.nodes[found->second];
      Span<ValueId> operands = graph_.operands(found->second);
      if (copy.confidence < kCertain || copy.name != original.name ||
          (copy.follows == kNone && copy.owner != use.user) ||
          graph_.operands(use.user).size() != operands.size())
        continue;
      NodeId maker = graph_.makerAround(operands[use.number]);
      if (maker == kNone)
        continue;
      const Node &made = graph_.nodes[maker];
      if (made.name != node.name || made.origin->primitive != node.origin->primitive ||
          !contains(places, made.key) || (made.follows != kNone) != serves ||
          (!serves && made.owner != maker))
        continue;
      originals[id] = maker;
      node.primal = made.owner;
      node.confidence = copy.confidence;
      return;
    }
}

/// Whether a node works on anything but constants, broadcast or not: those prove nothing.
bool Aligner::worksOnValues(NodeId id) {
  Span<ValueId> operands = graph_.operands(id);
  return std::any_of(operands.begin(), operands.end(), [&](ValueId operand) {
    return !values_.isConstant(splatOr(graph_, values_.canonical(operand)));
  });
}

/// Whether what the recomputed node `id` works on says that it belongs to `equation`: it is what
/// the equation works on itself, or made of that.
bool Aligner::worksOnItsOwn(NodeId id, NodeId equation) {
  bool isCopy = graph_.nodes[id].name == graph_.nodes[equation].name;
  if (isCopy && (!mayRepeat(id, equation) || mayBeHoisted(graph_.nodes[id])))
    return false;
  for (ValueId operand : graph_.operands(id)) {
    ValueId value = values_.canonical(operand);
    NodeId maker = values_.maker(value);
    if (maker != kNone && graph_.nodes[maker].isRematted) {
      const Node &copy = graph_.nodes[maker];
      if (copy.primal != kNone && copy.confidence >= kCertain &&
          (copy.primal == equation || contains(makersFor(equation), copy.primal)))
        return true;
    } else if (!values_.isConstant(splatOr(graph_, value)) && worksOn(equation, value)) {
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
