// SPDX-License-Identifier: Apache-2.0
//
// Whom derived operations belong to that no rule of differentiation explains: what drives loops,
// and what batching and lowering add.
#include "pairing_aligner.h"
#include "pairing_rules.h"

namespace hlotag::analysis {

using namespace ir;

/// What drives a backward loop or fits arguments of a region (counter, slices) has its line.
bool Aligner::isPlumbing(const Node &node) const {
  if (graph_.hostOf(node) == kNone)
    return false;
  std::string_view primitive = graph_.provenance().text(node.origin->primitive);
  return primitive != "closed_call" && primitive != "while" && primitive != "cond";
}

void Aligner::adoptPlumbing() {
  for (NodeId id : backward_.derived) {
    Node &node = graph_.nodes[id];
    if (node.primal != kNone || !node.isTransposed)
      continue;
    NodeId host = isPlumbing(node) ? graph_.hostOf(node) : kNone;
    // A loop's slices may be in the function that its body calls.
    if (host == kNone && call_ != kNone && node.origin->source &&
        graph_.nodes[call_].origin->source == node.origin->source &&
        graph_.provenance().text(graph_.nodes[call_].primitive).substr(0, 4) != "jit(")
      host = call_;
    if (host == kNone)
      continue;
    node.primal = graph_.nodes[host].primal;
    node.confidence = graph_.nodes[host].confidence;
  }
}

/// The equation of all operations that use what `node` makes, if they are of its place; or kNone.
NodeId Aligner::onlySink(const Node &node, const Clues &clues) const {
  NodeId only = kNone;
  for (NodeId sink : clues.sinks()) {
    const Node &user = graph_.nodes[sink];
    if (user.key != node.key || user.trace != node.trace || user.primal == kNone ||
        (only != kNone && only != user.primal))
      return kNone;
    only = user.primal;
  }
  return only;
}

/// Whether `node` gives a cotangent a dimension that whatever uses it broadcasts implicitly. A
/// cotangent has the shape of its value: only batching leaves out a dimension there.
bool Aligner::isBroadcastByUser(NodeId id, const Clues &clues) const {
  const Node &node = graph_.nodes[id];
  if (clues.numBatched == 0 || !graph_.isShaping(node))
    return false;
  for (const Use &use : values_.uses(node.firstResult)) {
    NodeId user = use.user;
    if (user == kNone || graph_.nodes[user].follows == kNone ||
        !graph_.isShaping(graph_.nodes[user]))
      return false;
  }
  return true;
}

/// An operation that no rule of differentiation explains: batching and lowering add them. Its
/// cotangent is that of an equation that is there, so it belongs to one of those.
bool Aligner::adoptHelper(const Chain &chain, size_t at) {
  Node &node = graph_.nodes[chain.nodes[at]];
  const Clues &clues = chain.clues[at];
  const Bucket &bucket = *clues.bucket;
  if (chain.kind == Kind::Recomputed &&
      (!node.origin->expanded || !clues.sources().empty() || !clues.residuals().empty()))
    return false;
  std::vector<NodeId> possible;
  float confidence = 1.0f;
  if (NodeId sink = isBroadcastByUser(chain.nodes[at], clues) ? onlySink(node, clues) : kNone;
      sink != kNone) {
    node.primal = sink;
    node.confidence = mostFor(node);
    for (NodeId user : clues.sinks())
      node.confidence = std::min(node.confidence, graph_.nodes[user].confidence);
    return true;
  }
  for (NodeId source : clues.sources()) {
    const Node &maker = graph_.nodes[source];
    if (maker.primal == kNone)
      return false;
    confidence = std::min(confidence, maker.confidence);
    if (maker.key == node.key && maker.trace == node.trace)
      addOnce(possible, maker.primal);
    for (NodeId equation : makersFor(maker.primal))
      if (std::binary_search(bucket.begin(), bucket.end(), equation) &&
          isCandidate(node, bucket, equation) && feeds(equation, maker.primal, chain, source))
        addOnce(possible, equation);
  }
  NodeId sink = onlySink(node, clues);
  bool isOfSink = clues.sources().empty() && sink != kNone &&
                  ((clues.isZero && chain.kind == Kind::Transposed) ||
                   std::any_of(clues.residuals().begin(), clues.residuals().end(),
                               [&](ValueId r) { return isTied(r, sink); }));
  isOfSink |= possible.size() == 1 && possible[0] == sink;
  if (sink != kNone && (isOfSink || clues.sources().empty()))
    for (NodeId user : clues.sinks())
      confidence = std::min(confidence, graph_.nodes[user].confidence);
  if (clues.sources().empty() && sink != kNone) {
    possible = {sink};
    confidence = isOfSink ? confidence : std::min(confidence, 0.85f);
  }
  if (possible.size() > 1 && contains(possible, sink)) {
    possible = {sink};
    confidence = std::min(confidence, 0.85f);
  }
  if (possible.size() != 1)
    return false;
  // Where the rule of an equation there does explain it, that may be the one.
  auto [begin, end] = candidates(chain, bucket, possible[0], possible[0], kMaxCandidates / 2);
  bool isExplained =
      std::any_of(bucket.begin() + intptr_t(begin), bucket.begin() + intptr_t(end), [&](NodeId id) {
        return id != possible[0] && isCandidate(node, bucket, id) &&
               fitOf(chain, graph_.nodes[id].primitive, node.primitive) >= 2.0f &&
               supportFor(chain, at, id).score > 0;
      });
  if (isExplained && !clues.isZero)
    confidence = std::min(confidence, 0.85f);
  // An equation may leave no operation in the forward pass, but for the name of its transpose.
  if (!isHelper(graph_.provenance().text(node.primitive)))
    confidence = std::min(confidence, 0.8f);
  node.primal = possible[0];
  bool isOfFirst = graph_.provenance().text(node.order->level) == "t";
  // In some functions everything is at one place.
  bool isPlaced = isOfFirst || (isOfSink && node.origin->source);
  node.confidence = std::min(confidence, isPlaced ? mostFor(node) : 0.85f);
  return true;
}

void Aligner::adoptHelpers(const Chain &chain, const std::vector<size_t> &places) {
  auto adopt = [&](size_t at) {
    if (graph_.nodes[chain.nodes[at]].primal == kNone)
      adoptHelper(chain, at);
  };
  std::for_each(places.begin(), places.end(), adopt);
  std::for_each(places.rbegin(), places.rend(), adopt);
}

} // namespace hlotag::analysis
