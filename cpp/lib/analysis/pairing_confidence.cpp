// SPDX-License-Identifier: Apache-2.0
//
// How sure a pair is.
#include "pairing_aligner.h"
#include "pairing_rules.h"

namespace hlotag::analysis {
namespace {

constexpr size_t kMaxRivals = 8;
constexpr float kFit = 2.0f;
constexpr float kGoodFit = 2.5f;
constexpr float kBetterFit = 1.0f; // what a rule says is so much more than what another may do

bool endsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

} // namespace

/// How sure a pair can be at most. Nothing tells one of several equations that compute the same
/// from the others. In higher orders, equations that derivatives add share the place of those they
/// come from.
float Aligner::mostFor(const Node &node) const {
  if (node.primal != kNone && graph_.nodes[node.primal].isRepeated)
    return 0.85f;
  // What was batched before it was transposed is in the forward pass too, but for jax.checkpoint,
  // which adds to that.
  bool isCopied = node.isCheckpointed || node.isRematted;
  if (node.primal != kNone && !isCopied &&
      !endsWith(graph_.provenance().text(graph_.nodes[node.primal].origin->transforms),
                graph_.provenance().text(node.order->inner)))
    return 0.85f;
  std::string_view level = graph_.provenance().text(node.order->level);
  std::string_view letters = graph_.provenance().text(node.order->letters);
  if (level == "t" && letters.find_last_of('t') == 0)
    return 1.0f;
  return node.isCheckpointed || node.isRematted ? 0.85f : 0.95f;
}

/// Whether `derived` could stem from another equation at its place, as in a loop or in what the
/// library writes at one line of user code.
bool Aligner::isMixed(const Chain &chain, const Node &derived) {
  const Bucket &bucket = bucketOf(derived);
  size_t count = std::min(bucket.size(), kMaxCandidates);
  return std::any_of(bucket.begin(), bucket.begin() + intptr_t(count), [&](NodeId id) {
    const Node &other = graph_.nodes[id];
    return id != derived.primal && !haveOneOrigin(id, derived.primal) &&
           isCandidate(derived, bucket, id) &&
           fitOf(chain, other.primitive, derived.primitive) >= 1.0f;
  });
}

/// Whether both stem from one equation of the program, for sure: then it does not matter which of
/// the two a derived operation is paired with.
bool Aligner::haveOneOrigin(NodeId a, NodeId b) const {
  auto originOf = [&](NodeId id) {
    while (id != kNone && graph_.nodes[id].order->isDerived && !graph_.nodes[id].isRematted)
      id = graph_.nodes[id].confidence < kCertain ? kNone : graph_.nodes[id].primal;
    return id;
  };
  NodeId origin = originOf(a);
  return origin != kNone && origin == originOf(b);
}

/// Whether the derivative of `equation` only makes values of the one type that it works on, and
/// `derived` one of another.
bool Aligner::keepsType(const Node &equation, const Node &derived) {
  Linearity linearity = linearityOf(graph_.provenance().text(equation.primitive));
  if (linearity == Linearity::Unknown || linearity == Linearity::Product ||
      derived.order->numBatched > 0 || equation.numResults == 0 || equation.takes.empty())
    return false;
  TypeId own = graph_.makes(equation)[0];
  Span<TypeId> makes = graph_.makes(derived);
  auto isOfType = [&](TypeId type) { return type == own; };
  return std::all_of(equation.takes.begin(), equation.takes.end(), isOfType) &&
         std::none_of(makes.begin(), makes.end(), isOfType);
}

/// Whether what batching seems to have emitted for the equation of `member` may be an equation of
/// its own, and the one that is paired was derived from that: then its cotangent comes in there.
bool Aligner::mayStemFromShape(const Chain &chain, size_t at, NodeId member) {
  const Node &shape = graph_.nodes[member];
  const Node &node = graph_.nodes[chain.nodes[at]];
  if (fitOf(chain, shape.primitive, node.primitive) < 1.0f)
    return false;
  auto comesIn = [&](const Node &derived) {
    return isAnyAlike(derived.takes, graph_.makes(shape), chain.clues[at].numBatched);
  };
  auto isOfSame = [&](NodeId source) {
    return graph_.nodes[source].primal == node.primal && comesIn(graph_.nodes[source]);
  };
  Span<NodeId> sources = chain.clues[at].sources();
  return comesIn(node) || std::any_of(sources.begin(), sources.end(), isOfSame);
}

/// Whether more derived operations multiply a residual with a cotangent than equations do: that of
/// one of them was dead code.
bool Aligner::isOneTooMany(const Chain &chain, size_t at) {
  const Node &node = graph_.nodes[chain.nodes[at]];
  TextId primitive = graph_.nodes[node.primal].primitive;
  // Differentiated again, an equation has several of each.
  bool isOnce = graph_.provenance().text(node.order->letters).size() <= 2;
  if (!isOnce || linearityOf(graph_.provenance().text(primitive)) != Linearity::Product)
    return false;
  const Bucket &bucket = *chain.clues[at].bucket;
  Span<ValueId> operands = graph_.operands(chain.nodes[at]);
  return std::any_of(operands.begin(), operands.end(), [&](ValueId residual) {
    Span<Use> uses = values_.uses(residual);
    ValueId value = graph_.inBranchOf(node, graph_.root(residual));
    if (uses.size() > kMaxUses || !isTied(value, node.primal))
      return false;
    std::vector<ValueId> cotangents; // an equation may multiply both of its operands with its own
    for (const Use &use : uses) {
      if (use.user == kNone)
        continue;
      const Node &other = graph_.nodes[use.user];
      if (!other.isTransposed || other.key != node.key || other.name != node.name ||
          other.region != node.region || other.order != node.order)
        continue;
      for (ValueId operand : graph_.operands(use.user))
        if (operand != residual && !contains(cotangents, operand))
          cotangents.push_back(operand);
    }
    size_t numEquations = 0;
    for (size_t i = 0; i < std::min(bucket.size(), kMaxCandidates); ++i)
      numEquations += isTied(value, bucket[i]);
    return cotangents.size() > numEquations;
  });
}

/// How sure a pair is. What shares a value with only one of the candidates between `low` and
/// `high`, or takes over the cotangent of its only user, is certain; what only its place speaks for
/// is not: its own forward operation may have been dead code.
float Aligner::confidenceOf(const Chain &chain, size_t at, NodeId low, NodeId high) {
  Node &node = graph_.nodes[chain.nodes[at]];
  NodeIds rivals;
  node.agreed = 0;
  NodeId primal = node.primal;
  Support own = supportFor(chain, at, primal);
  bool hasRival = false, hasTiedRival = false, hasLinkedRival = false, hasBetterTied = false,
       hasBetterFit = false;
  // How many operations its derivative takes is not known: the order does not tell two apart.
  bool isOpaque = graph_.traits(graph_.nodes[primal]).usesAnything &&
                  !graph_.nodes[primal].hasRegions && !graph_.functionOf(graph_.nodes[primal]);
  bool hasTwin = false;
  const Bucket &bucket = *chain.clues[at].bucket;
  auto [begin, end] = candidates(chain, bucket, primal, primal, kMaxCandidates / 2);
  for (size_t i = begin; i < end; ++i) {
    bool isOutside = bucket[i] < low || bucket[i] > high;
    if (bucket[i] == primal || (isOutside && own.fit >= 1.0f && !isOpaque) ||
        !isCandidate(node, bucket, bucket[i]) || haveOneOrigin(bucket[i], primal))
      continue;
    Support other = supportFor(chain, at, bucket[i]);
    hasTwin |= isOpaque && graph_.nodes[bucket[i]].primitive == graph_.nodes[primal].primitive &&
               other.numTied >= own.numTied;
    // Batching changes types: one that fits less is no reason against what else speaks for it.
    // So is one that moves the data of the equation before.
    bool isMoved = other.isInner && !own.isInner && graph_.isShaping(node) &&
                   !keepsType(graph_.nodes[bucket[i]], node);
    bool isLess = other.types < own.types && (other.types == 0 || !(other.isLinked || isMoved));
    // Nothing is known of what it may emit: order and types are not enough against a rule.
    hasBetterFit |= other.score > 0 && own.fit < 1.0f && other.fit >= own.fit + kBetterFit;
    if (other.score <= 0 || (isLess && chain.kind == Kind::Transposed))
      continue;
    if (isOutside)
      continue;
    hasRival = true;
    if (rivals.size() < kMaxRivals)
      rivals.push_back(graph_.arena, bucket[i]);
    hasTiedRival |= other.isTied && other.numTied >= own.numTied;
    hasBetterTied |= other.numTied > own.numTied;
    // What an equation emits may use what it emitted before, if the types or its rule allow that.
    bool isNext =
        other.isInner && !other.isClosed && (own.types < 2 || (!own.isTied && other.fit >= kFit));
    hasLinkedRival |= other.isLinked || isMoved || isNext;
  }
  for (NodeId member : graph_.membersOf(primal)) {
    if (!graph_.nodes[member].isShape || !mayStemFromShape(chain, at, member))
      continue;
    hasLinkedRival = true;
    if (rivals.size() < kMaxRivals)
      rivals.push_back(graph_.arena, member);
  }
  float atMost = std::min(mostFor(node), chain.hostConfidence);
  if (hasTwin || hasBetterTied || hasBetterFit)
    atMost = std::min(atMost, 0.85f);
  // There, differentiating again makes several equations of each; what a function is handed from
  // outside does not tell them apart.
  if (graph_.isHigherOrder && isAcross() && (!node.origin->source || isMixed(chain, node)))
    atMost = std::min(atMost, 0.85f);
  if (chain.kind == Kind::Transposed && !own.isLinked && !own.isInner && isOneTooMany(chain, at))
    atMost = std::min(atMost, 0.85f);
  NodeId parent = graph_.parentOf(node);
  bool isInCopy = parent != kNone && graph_.nodes[parent].isRematted;
  if (isInCopy && graph_.nodes[parent].confidence < kCertain)
    atMost = std::min(atMost, 0.85f);
  if (chain.kind == Kind::Recomputed)
    return hasRival || atMost < 1.0f ||
                   (chain.clues[at].numBatched > 0 && graph_.isShaping(node)) ||
                   !worksOnItsOwn(chain.nodes[at], primal)
               ? 0.85f
               : 0.97f;
  if (!own.isTied && graph_.nodes[primal].name == graph_.ids().funcCall &&
      node.name != graph_.ids().funcCall)
    atMost = std::min(atMost, 0.85f);
  // jax.checkpoint loses the frames that tell runs of a line apart.
  bool isLoose = node.isCheckpointed && chain.clues[at].numBatched > 0 && !own.isTied;
  if (!chain.clues[at].hasCotangent || (isLoose && isMixed(chain, node)))
    atMost = std::min(atMost, 0.85f);
  float linked = (own.isLinked || own.isInner) && !hasLinkedRival ? own.linkConfidence : 0.0f;
  float tied = own.isTied && !hasTiedRival ? (hasRival || own.fit < kGoodFit ? 0.95f : 1.0f) : 0.0f;
  tied = std::min(tied, chain.clues[at].certainty);
  // A type that only fits within an equation rests on what is said to be of the same.
  if (own.types < 2 && own.isInner)
    tied = std::min(tied, own.linkConfidence);
  float proved = std::max(own.isTied ? std::min(0.95f, chain.clues[at].certainty) : 0.0f,
                          own.isLinked || own.isInner ? own.linkConfidence : 0.0f);
  if (rivals.size() < kMaxRivals) {
    node.agreed = std::min(atMost, proved);
    if (!rivals.empty() || graph_.rivals.find(chain.nodes[at]))
      *graph_.rivals.insert(chain.nodes[at]).first = rivals;
  }
  if (std::max(linked, tied) > 0)
    return std::min(atMost, std::max(linked, tied));
  if (own.isFollowed && !hasRival)
    return std::min(atMost,
                    chain.clues[at].sources().empty() && chain.hasOutput(primal) ? 0.95f : 0.85f);
  return hasRival ? 0.6f : 0.75f;
}

} // namespace hlotag::analysis
