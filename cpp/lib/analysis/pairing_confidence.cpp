// SPDX-License-Identifier: Apache-2.0
//
// How sure a pair is.
#include "pairing_aligner.h"

namespace hlotag::analysis {
namespace {

constexpr size_t kMaxRivals = 8;
constexpr float kGoodFit = 2.5f;

} // namespace

/// How sure a pair can be at most. In higher orders, equations that derivatives add share the place
/// of those they come from.
float Aligner::mostFor(const Node &node) const {
  std::string_view level = graph_.provenance().text(node.order->level);
  std::string_view letters = graph_.provenance().text(node.order->letters);
  if (level == "t" && letters.find_last_of('t') == 0)
    return 1.0f;
  return node.origin->checkpointed || node.origin->rematted ? 0.85f : 0.95f;
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
           fitOf(chain.kind, other.primitive, derived.primitive) >= 1.0f;
  });
}

/// Whether both stem from one equation of the program, for sure: then it does not matter which of
/// the two a derived operation is paired with.
bool Aligner::haveOneOrigin(NodeId a, NodeId b) const {
  auto originOf = [&](NodeId id) {
    while (id != kNone && graph_.nodes[id].order->isDerived && !graph_.nodes[id].origin->rematted)
      id = graph_.nodes[id].confidence < kCertain ? kNone : graph_.nodes[id].primal;
    return id;
  };
  NodeId origin = originOf(a);
  return origin != kNone && origin == originOf(b);
}

/// How sure a pair is. What shares a value with only one of the candidates between `low` and
/// `high`, or takes over the cotangent of its only user, is certain; what only its place speaks for
/// is not: its own forward operation may have been dead code.
float Aligner::confidenceOf(const Chain &chain, size_t at, NodeId low, NodeId high) {
  Node &node = graph_.nodes[chain.nodes[at]];
  node.rivals.clear();
  node.agreed = 0;
  NodeId primal = node.primal;
  Support own = supportFor(chain, at, primal);
  bool hasRival = false, hasTiedRival = false, hasLinkedRival = false, hasBetterTied = false;
  const Bucket &bucket = bucketOf(node);
  auto [begin, end] = candidates(chain, bucket, primal, primal, kMaxCandidates / 2);
  for (size_t i = begin; i < end; ++i) {
    if (bucket[i] == primal || bucket[i] < low || bucket[i] > high ||
        !isCandidate(node, bucket, bucket[i]) || haveOneOrigin(bucket[i], primal))
      continue;
    Support other = supportFor(chain, at, bucket[i]);
    if (other.score <= 0 || (other.types < own.types && chain.kind == Kind::Transposed))
      continue;
    hasRival = true;
    if (node.rivals.size() < kMaxRivals)
      node.rivals.push_back(bucket[i]);
    hasTiedRival |= other.isTied && other.numTied >= own.numTied;
    hasBetterTied |= other.numTied > own.numTied;
    hasLinkedRival |= other.isLinked || (other.isInner && own.types < 2 && !other.isClosed) ||
                      (other.isInner && !own.isInner && graph_.isShaping(node.op));
  }
  float atMost = std::min(mostFor(node), chain.hostConfidence);
  if (hasBetterTied)
    atMost = std::min(atMost, 0.85f);
  // There, differentiating again makes several equations of each; what a function is handed from
  // outside does not tell them apart.
  if (graph_.isHigherOrder && isAcross() && (!node.origin->source || isMixed(chain, node)))
    atMost = std::min(atMost, 0.85f);
  if (chain.kind == Kind::Recomputed)
    return hasRival || atMost < 1.0f || (chain.clues[at].isBatched && graph_.isShaping(node.op))
               ? 0.85f
               : 0.97f;
  if (!own.isTied && graph_.nodes[primal].op.name() == graph_.ids().funcCall &&
      node.op.name() != graph_.ids().funcCall)
    atMost = std::min(atMost, 0.85f);
  // jax.checkpoint loses the frames that tell runs of a line apart.
  bool isLoose = node.origin->checkpointed && chain.clues[at].isBatched && !own.isTied;
  if (!chain.clues[at].hasCotangent || (isLoose && isMixed(chain, node)))
    atMost = std::min(atMost, 0.85f);
  float linked = (own.isLinked || own.isInner) && !hasLinkedRival ? own.linkConfidence : 0.0f;
  float tied = own.isTied && !hasTiedRival ? (hasRival || own.fit < kGoodFit ? 0.95f : 1.0f) : 0.0f;
  tied = std::min(tied, chain.clues[at].certainty);
  float proved = std::max(own.isTied ? std::min(0.95f, chain.clues[at].certainty) : 0.0f,
                          own.isLinked || own.isInner ? own.linkConfidence : 0.0f);
  if (node.rivals.size() < kMaxRivals)
    node.agreed = std::min(atMost, proved);
  if (std::max(linked, tied) > 0)
    return std::min(atMost, std::max(linked, tied));
  if (own.isFollowed && !hasRival)
    return chain.clues[at].sources.empty() && contains(chain.outputs, primal) ? 0.95f : 0.85f;
  return hasRival ? 0.6f : 0.75f;
}

} // namespace hlotag::analysis
