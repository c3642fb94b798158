// SPDX-License-Identifier: Apache-2.0
//
// What speaks for a pair: primitives, types, constants, shared values, neighbours in the graph.
#include "pairing_aligner.h"
#include "pairing_rules.h"

namespace hlotag::analysis {

using namespace ir;

/// What the graph says: which equation made the cotangent that comes in, and which equations have
/// to do with the other operands.
Evidence Aligner::evidenceFor(NodeId id) {
  Evidence links, residuals;
  const Node &node = graph_.nodes[id];
  bool isSum = graph_.provenance().text(node.origin->primitive) == "add_any";
  NodeId latest = kNone;
  for (Value raw : node.op.operands()) {
    Value value = graph_.canonical(raw);
    NodeId source = graph_.nodeOf(value.definingOp());
    if (source != kNone && graph_.nodes[source].origin->transposed) {
      const Node &other = graph_.nodes[source];
      residuals.hasCotangent = true;
      if (other.follows == kNone && other.key == node.key &&
          other.origin->trace == node.origin->trace)
        residuals.inner.push_back(other.primal);
    }
    if (source != kNone && graph_.nodes[source].origin->rematted) {
      const Node &recomputed = graph_.nodes[source];
      if (recomputed.primal != kNone && recomputed.owner != source)
        residuals.add(recomputed.primal, 2.0f);
      continue;
    }
    if (source != kNone && graph_.nodes[source].origin->transposed) {
      NodeId made = graph_.nodes[source].follows == kNone ? source : graph_.nodes[source].follows;
      if (latest == kNone || made > latest)
        latest = made;
      if (!isSum)
        addLinks(made, links);
      continue;
    }
    if (source != kNone) {
      // Only few derivatives use the result itself; the others use operands.
      const Node &owner = graph_.nodes[graph_.nodes[source].owner];
      bool isUsed = graph_.nodes[source].owner != source ||
                    usesOwnResult(graph_.provenance().text(owner.origin->primitive));
      residuals.add(graph_.nodes[source].owner, isUsed ? 2.0f : 0.3f);
    }
    size_t count = 0;
    for (OpOperand use : value.uses()) {
      if (++count > kMaxUses)
        break;
      NodeId user = graph_.nodeOf(use.owner());
      if (user != kNone && isForward(graph_.nodes[user]) &&
          graph_.nodes[graph_.nodes[user].owner].key == node.key)
        residuals.add(graph_.nodes[user].owner, 1.6f);
    }
  }
  // Cotangents are added as soon as the equation that made the last one is through.
  if (isSum && latest != kNone && graph_.nodes[latest].primal != kNone)
    links.add(sumOwner(graph_.nodes[latest].primal), 3.0f);
  residuals.links = links.weights;
  for (auto [primal, weight] : links.weights)
    residuals.add(primal, residuals.of(primal) + weight);
  residuals.latest = latest;
  // Batching adds a dimension to some values and not to others.
  residuals.isBatched =
      graph_.provenance().text(node.origin->transforms).find('v') != std::string_view::npos;
  return residuals;
}

/// Only the cotangent of a value that is used twice is a sum. If `primal` has no such operand, the
/// sum is that of an addition before it, which hands on its cotangent and emits nothing itself.
NodeId Aligner::sumOwner(NodeId primal) {
  NodeId addition = kNone;
  for (Value operand : graph_.nodes[primal].op.operands()) {
    size_t count = 0;
    for (OpOperand use : graph_.canonical(operand).uses()) {
      NodeId user = graph_.nodeOf(use.owner());
      if (user != kNone && isForward(graph_.nodes[user]) && graph_.nodes[user].follows == kNone)
        ++count;
      if (count > 1)
        return primal;
    }
    NodeId maker = graph_.definition(operand);
    if (maker != kNone && graph_.provenance().text(graph_.nodes[maker].origin->primitive) == "add")
      addition = maker;
  }
  return addition == kNone ? primal : addition;
}

/// The equation after `made` going backwards is its own, or one that made an operand of it.
void Aligner::addLinks(NodeId made, Evidence &links) {
  NodeId consumer = graph_.nodes[made].primal;
  if (consumer == kNone)
    return;
  links.add(consumer, 0.6f);
  for (Value operand : graph_.nodes[consumer].op.operands()) {
    NodeId maker = graph_.definition(operand);
    if (maker != kNone && graph_.nodes[maker].follows == consumer)
      maker = graph_.definition(graph_.nodes[maker].op.operands()[0]);
    if (maker != kNone && graph_.nodes[maker].owner != consumer)
      links.add(graph_.nodes[maker].owner, 1.5f);
  }
}

/// A cotangent comes in with the type of the equation's result, unless it comes from an operation
/// of the same equation, and goes out with the type of an operand. Returns a factor and a bonus.
std::pair<float, float> Aligner::typeFit(const Node &derived, NodeId primal,
                                         const Evidence &evidence) const {
  auto share = [](const std::vector<const void *> &a, const std::vector<const void *> &b) {
    return std::find_first_of(a.begin(), a.end(), b.begin(), b.end()) != a.end();
  };
  const Node &from = graph_.nodes[primal];
  bool comesIn = share(derived.takes, from.makes);
  bool goesOut = share(derived.makes, from.takes);
  auto isSame = [&](NodeId other) { return other == kNone || other == primal; };
  bool mayBeInner = std::any_of(evidence.inner.begin(), evidence.inner.end(), isSame);
  float factor =
      !comesIn && !evidence.isBatched && evidence.hasCotangent && !mayBeInner ? 0.3f : 1.0f;
  return {factor, (comesIn ? 0.7f : 0.0f) + (goesOut ? 0.7f : 0.0f)};
}

float Aligner::fitOf(Kind kind, TextId primal, TextId derived) {
  uint64_t key = uint64_t(primal) << 32 | derived << 1 | uint64_t(kind == Kind::Recomputed);
  auto [fit, isNew] = graph_.fits.try_emplace(key, 0.0f);
  if (!isNew)
    return fit->second;
  std::string_view source = graph_.provenance().text(primal);
  std::string_view target = graph_.provenance().text(derived);
  if (kind == Kind::Transposed)
    fit->second = transposeFit(source, target);
  else
    fit->second = source == target ? 3.0f : isResidualOf(source, target) ? 1.5f : 0.0f;
  return fit->second;
}

/// 0: not a pair.
float Aligner::score(const Chain &chain, NodeId derived, NodeId primal, const Evidence &evidence) {
  const Node &from = graph_.nodes[primal];
  const Node &to = graph_.nodes[derived];
  float fit = fitOf(chain.kind, from.origin->primitive, to.origin->primitive);
  if (fit == 0)
    return 0;
  if (from.origin->trace && from.origin->trace == to.origin->trace)
    fit += 1.0f;
  if (to.constant && from.constant)
    fit += from.constant == to.constant ? 2.0f : -0.8f;
  else if (from.constant && chain.kind == Kind::Transposed && to.op.name() == from.op.name())
    fit -= 1.0f; // multiplying by a constant transposes to the same
  else if (to.constant && chain.kind == Kind::Transposed)
    fit -= 0.5f;
  auto [factor, bonus] = typeFit(to, primal, evidence);
  return factor * (std::max(fit, 0.1f) + evidence.of(primal) + bonus);
}

/// How sure a pair can be at most: if nothing but its neighbours speaks for it, as sure as those;
/// if nothing at all does, not very: its own forward operation may have been dead code.
float Aligner::supportFor(const Node &node, NodeId primal, const Evidence &evidence) const {
  // What came before in the same place has no pair: dead code in the forward pass, perhaps of this.
  if (std::count(evidence.inner.begin(), evidence.inner.end(), kNone))
    return 0.8f;
  float link = 0;
  for (auto [linked, weight] : evidence.links)
    if (linked == primal)
      link = weight;
  const Node &from = graph_.nodes[primal];
  bool sharesTrace = from.origin->trace && from.origin->trace == node.origin->trace;
  if (evidence.of(primal) - link >= 1.6f || (node.constant && node.constant == from.constant) ||
      (sharesTrace && bucketOf(node.key).size() == 1))
    return 1.0f;
  if (link > 0 && evidence.latest != kNone)
    return std::max(0.5f, graph_.nodes[evidence.latest].confidence);
  return sharesTrace ? 0.92f : 0.8f;
}

} // namespace hlotag::analysis
