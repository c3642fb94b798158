// SPDX-License-Identifier: Apache-2.0
//
// What speaks for a pair: primitives, types, constants, shared values, neighbours in the graph.
#include "pairing_aligner.h"
#include "pairing_rules.h"

namespace hlotag::analysis {

using namespace ir;

namespace {

constexpr float kBroadcastFit = 1.2f; // of the sum that an operand leaves that was broadcast

} // namespace

void Clues::keep(Arena &arena, const Lists &lists) {
  uint32_t size = 0;
  for (int which = 0; which < NumLists; ++which)
    ends_[which] = size += uint32_t(lists[which].size());
  auto *at = static_cast<uint32_t *>(arena.allocate(size * sizeof(uint32_t), alignof(uint32_t)));
  ids_ = at;
  for (const std::vector<uint32_t> &list : lists)
    at = std::copy(list.begin(), list.end(), at);
}

/// The equations of that place that make or use `residual`.
void Aligner::addUsers(ValueId residual, KeyId key, std::vector<NodeId> &users) {
  auto add = [&](NodeId id) {
    if (id != kNone && graph_.nodes[graph_.nodes[id].owner].key == key)
      addOnce(users, graph_.nodes[id].owner);
  };
  add(values_.maker(residual));
  size_t count = 0;
  for (const Use &use : values_.uses(residual)) {
    if (++count > kMaxUses)
      break;
    add(use.user);
  }
}

/// Cotangents come from operations of the same level, or from outside; all else is a residual.
Clues Aligner::cluesFor(NodeId id) {
  const Node &node = graph_.nodes[id];
  Clues clues;
  clues.bucket = &bucketOf(node);
  for (std::vector<uint32_t> &list : lists_)
    list.clear();
  std::vector<NodeId> &sources = lists_[Clues::Sources], &sinks = lists_[Clues::Sinks],
                      &users = lists_[Clues::Users], &helps = lists_[Clues::Helps];
  std::vector<ValueId> &residuals = lists_[Clues::Residuals], &given = lists_[Clues::Given];
  clues.hasCotangent = node.hasRegions; // a region takes its values from around it
  clues.numBatched = uint32_t(node.order->numBatched);
  auto isSameLevel = [&](NodeId other) {
    const Node &maker = graph_.nodes[other];
    return maker.isTransposed && maker.isRematted == node.isRematted &&
           maker.order->level == node.order->level;
  };
  auto see = [&](ValueId raw) {
    ValueId value = values_.canonical(raw);
    NodeId source = values_.maker(value);
    clues.hasCotangent |= source == kNone || isSameLevel(source);
    if (source != kNone && graph_.nodes[source].follows == id) {
      value = graph_.root(value); // broadcast for this operation
      source = values_.maker(value);
    }
    if (source != kNone && isSameLevel(source) && graph_.isZero(source))
      return; // made for this operation
    // Batching brings residuals into shape too.
    if (source != kNone && isSameLevel(source) && graph_.isShaping(graph_.nodes[source]))
      if (NodeId maker = values_.maker(graph_.root(value));
          maker != kNone && graph_.nodes[maker].order->letters == node.order->base) {
        value = graph_.root(value);
        source = maker;
      }
    if (isSeed(node, value, source)) {
      clues.isSeeded = true;
      return;
    }
    if (source != kNone && isSameLevel(source)) {
      addOnce(sources,
              graph_.nodes[source].follows == kNone ? source : graph_.nodes[source].follows);
      return;
    }
    addUsers(value, node.key, users);
    if (ValueId made = graph_.inBranchOf(node, graph_.root(value)); made != value) {
      addUsers(made, node.key, users);
      value = made;
    }
    source = values_.maker(value);
    if (source != kNone && graph_.nodes[source].isRematted &&
        graph_.nodes[source].primal != kNone) {
      const Node &copy = graph_.nodes[source];
      const Node &original = graph_.nodes[copy.primal];
      clues.certainty = std::min(clues.certainty, copy.confidence);
      if (copy.owner == source && copy.primitive == original.primitive &&
          graph_.makes(copy) == graph_.makes(original))
        residuals.push_back(graph_.root(graph_.results(copy.primal)[values_.number(value)]));
      else
        helps.push_back(copy.primal);
    } else if (source != kNone && !isSameLevel(source)) {
      residuals.push_back(value);
      if (graph_.nodes[source].isApart)
        clues.certainty = std::min(clues.certainty, 0.85f);
    } else if (source == kNone &&
               (values_.isArgument(value) ? isForwardParameter(value) : values_.isArgument(raw)))
      given.push_back(value);
  };
  graph_.forEachInput(id, see);
  for (NodeId helped : helps)
    addOnce(users, helped);
  // What is handed to the program may be the first cotangent.
  if (!sources.empty()) {
    residuals.insert(residuals.end(), given.begin(), given.end());
    given.clear();
  }
  clues.isZero = graph_.isZero(id);
  for (ValueId result : graph_.results(id)) {
    size_t count = 0;
    for (const Use &use : values_.uses(result)) {
      NodeId sink = use.user;
      if (++count > kMaxUses)
        break;
      if (sink != kNone && isSameLevel(sink))
        addOnce(sinks, graph_.nodes[sink].follows == kNone ? sink : graph_.nodes[sink].follows);
    }
  }
  clues.keep(arena_, lists_);
  return clues;
}

/// Whether `value`, made by `source` if that is a node, is a cotangent that the function or region
/// around `node` is handed.
bool Aligner::isSeed(const Node &node, ValueId value, NodeId source) const {
  NodeId host = graph_.parentOf(node);
  if (source == kNone && values_.isArgument(value)) {
    RegionId owner = values_.regionOf(value);
    return host == kNone ? isAcross() && owner == backward_.body : owner == node.region;
  }
  if (source == kNone || host == kNone || !graph_.nodes[source].isTransposed)
    return false;
  return source < host || graph_.hostOf(graph_.nodes[source]) == host;
}

bool Aligner::isForwardParameter(ValueId argument) const {
  RegionId owner = values_.regionOf(argument);
  return owner == backward_.body ? !isAcross() : values_.region(owner).host == kNone;
}

/// Whether `equation` works on `value`, or made it for its derivative.
bool Aligner::isTied(ValueId value, NodeId equation) {
  Equation &known = *equations_.insert(equation).first;
  ValueIds &touched = known.touched;
  if (!known.knowsTouched) {
    known.knowsTouched = true;
    const Node &node = graph_.nodes[equation];
    Traits traits = graph_.traits(node);
    bool usesResult = node.isOrphan || traits.usesOwnResult;
    for (NodeId id : graph_.membersOf(equation)) {
      NodeId main = graph_.nodes[id].follows == kNone ? id : graph_.nodes[id].follows;
      if (traits.usesOperand && (main == equation || graph_.nodes[main].tangentOf == equation))
        graph_.forEachInput(id,
                            [&](ValueId input) { touched.push_back(arena_, graph_.root(input)); });
      bool isResult = id == equation || graph_.nodes[id].tangentOf == equation;
      if (!isResult || usesResult)
        for (ValueId result : graph_.results(id))
          touched.push_back(arena_, graph_.root(result));
    }
  }
  return contains(touched, value);
}

/// A cotangent comes in with the type of the equation's result, unless it comes from an operation
/// of the same equation, and goes out with the type of an operand.
int Aligner::typesOf(const Node &derived, NodeId primal, const Clues &clues, float &bonus) {
  const Node &from = graph_.nodes[primal];
  auto shares = [&](Span<TypeId> a, Span<TypeId> b) {
    if (std::find_first_of(a.begin(), a.end(), b.begin(), b.end()) != a.end())
      return 2;
    return clues.numBatched > 0 && isAnyAlike(a, b, clues.numBatched) ? 1 : 0;
  };
  int comesIn = shares(derived.takes, graph_.makes(from));
  int goesOut = shares(graph_.makes(derived), from.takes);
  if (clues.numBatched > 0)
    for (NodeId member : graph_.membersOf(primal))
      if (member < primal && comesIn < 2 && graph_.nodes[member].follows == kNone)
        comesIn = std::max(comesIn, shares(derived.takes, graph_.makes(graph_.nodes[member])));
  bonus = 0.35f * float(comesIn + goesOut);
  if (clues.sources().empty())
    return clues.isSeeded ? std::max(comesIn, 1) : 2;
  for (NodeId source : clues.sources()) {
    const Node &other = graph_.nodes[source];
    if (other.key == derived.key && (other.primal == kNone || other.primal == primal))
      return std::max(comesIn, 1);
  }
  return comesIn;
}

bool Aligner::isAnyAlike(Span<TypeId> a, Span<TypeId> b, size_t numBatched) {
  return std::find_first_of(a.begin(), a.end(), b.begin(), b.end(), [&](TypeId x, TypeId y) {
           return graph_.isAlike(x, y, numBatched);
         }) != a.end();
}

float Aligner::fitOf(const Chain &chain, TextId primal, TextId derived) {
  bool isRecomputed = chain.kind == Kind::Recomputed;
  uint64_t kind = isRecomputed ? 0 : chain.isLinearized ? 1 : 2;
  uint64_t key = uint64_t(primal) << 32 | derived << 2 | kind;
  auto [fit, isNew] = graph_.fits.insert(key);
  if (!isNew)
    return *fit;
  std::string_view source = graph_.provenance().text(primal);
  std::string_view target = graph_.provenance().text(derived);
  if (isRecomputed)
    *fit = source == target ? 3.0f : residualOf(source, target) ? 1.5f : 0.0f;
  else
    *fit = transposeFit(source, target);
  if (*fit == 0 && chain.isLinearized)
    *fit = linearizedFit(source, target);
  return *fit;
}

/// Whether `equation` broadcasts a value implicitly.
bool Aligner::broadcastsOperand(NodeId equation) {
  for (NodeId member : graph_.membersOf(equation)) {
    const Node &node = graph_.nodes[member];
    if (node.follows != equation || !graph_.isShaping(node))
      continue;
    if (!values_.isConstant(values_.canonical(graph_.operands(member)[0])))
      return true;
  }
  return false;
}

Support Aligner::supportFor(const Chain &chain, size_t at, NodeId primal) {
  Support support;
  const Node &from = graph_.nodes[primal];
  const Node &to = graph_.nodes[chain.nodes[at]];
  const Clues &clues = chain.clues[at];
  Traits traits = graph_.traits(from);
  float fit = support.fit = fitOf(chain, from.primitive, to.primitive);
  if (fit == 0 && clues.hasCotangent && from.isOrphan && traits.isMostlyResidual) {
    for (ValueId residual : clues.residuals())
      if (values_.maker(residual) == primal)
        fit = 1.0f;
  }
  if (fit == 0 && chain.kind == Kind::Transposed)
    for (NodeId member : graph_.membersOf(primal))
      if (graph_.nodes[member].isShape && graph_.hasUnitDimension(graph_.nodes[member].takes[0]))
        fit = std::max(fit, fitOf(chain, graph_.nodes[member].primitive, to.primitive));
  // The transpose of a broadcast is a sum, which loses dimensions: only those of size 1 are made
  // anew.
  if (chain.kind == Kind::Transposed && traits.isBroadcast && graph_.isShaping(to) &&
      (from.takes.empty() || !graph_.hasUnitDimension(from.takes[0])))
    return support;
  if (chain.kind == Kind::Transposed && fit <= kBroadcastFit && graph_.traits(to).isReduceSum &&
      !broadcastsOperand(primal))
    return support;
  bool isSum = graph_.traits(to).isSum;
  if (fit == 0 || (derivedCalls_.count(from.primitive) && to.primitive != from.primitive && !isSum))
    return support;
  bool isFree = chain.kind == Kind::Recomputed ||
                graph_.provenance().text(to.order->level) != "t" || traits.usesAnything;
  float ties = 0;
  for (ValueId residual : clues.residuals()) {
    if (isTied(residual, primal))
      ++support.numTied;
    else if (!isFree)
      return support;
  }
  if (support.numTied > 0)
    ties = 1.0f + float(support.numTied) / float(clues.residuals().size());
  for (ValueId value : clues.given())
    if (isTied(value, primal))
      ties = 2.0f;
  for (NodeId helped : clues.helps()) {
    if (helped == primal)
      ties = 2.0f;
    else if (!isFree)
      return support;
  }
  support.isTied = ties > 0;
  if (to.constant != kNone && from.constant != kNone) {
    fit += from.constant == to.constant ? 2.0f : -0.8f;
    support.isTied |= from.constant == to.constant;
  } else if (from.constant != kNone && chain.kind == Kind::Transposed && to.name == from.name) {
    fit -= 1.0f; // multiplying by a constant transposes to the same
  } else if (to.constant != kNone && chain.kind == Kind::Transposed) {
    fit -= 0.5f;
  }
  float bonus = 0;
  support.types = typesOf(to, primal, clues, bonus);
  if (!support.types && !isSum && chain.kind == Kind::Transposed)
    return support;
  auto isAlike = [&](Span<TypeId> a, Span<TypeId> b) { return isAnyAlike(a, b, clues.numBatched); };
  float links = 0;
  auto link = [&](NodeId neighbour, float weight) {
    float confidence = graph_.nodes[neighbour].confidence;
    links = std::max(links, weight);
    support.linkConfidence = std::min(support.linkConfidence, confidence > 0 ? confidence : 1.0f);
  };
  if (isSum && !clues.sources().empty()) {
    bool isSure = true;
    if (sumOwner(chain.nodes[at], clues, isSure) == primal) {
      support.isLinked = true;
      if (!isSure)
        support.linkConfidence = 0.85f;
      link(*std::max_element(clues.sources().begin(), clues.sources().end()), 3.0f);
      bool isInside =
          std::all_of(clues.sources().begin(), clues.sources().end(),
                      [&](NodeId source) { return graph_.nodes[source].primal == primal; });
      if (from.order->isDerived && (!isInside || clues.isSeeded))
        support.linkConfidence = std::min(support.linkConfidence, 0.85f);
    }
  } else {
    for (NodeId source : clues.sources()) {
      NodeId other = graph_.nodes[source].primal;
      if (other == primal) {
        // A loop or conditional has one in the backward pass.
        if (to.hasRegions && graph_.nodes[source].name == to.name && from.name == to.name &&
            graph_.nodes[source].last > source)
          return {};
        support.isClosed = isAlike(graph_.makes(graph_.nodes[source]), from.takes) &&
                           !isAlike(graph_.makes(graph_.nodes[source]), graph_.makes(from));
        // What is made of an operand's cotangent is of the equation that made the operand.
        if (support.isClosed && !isAlike(graph_.makes(to), from.takes))
          continue;
        support.isInner = true;
        link(source, 0.6f);
      } else if (other != kNone && feeds(primal, other, chain, source)) {
        support.isLinked = true;
        link(source, 1.5f);
      }
    }
  }
  if (clues.sources().empty() && chain.hasOutput(primal)) {
    links = std::max(links, 0.8f);
    if (clues.isSeeded && support.types == 2) {
      support.isLinked = true;
      support.linkConfidence = std::min(0.97f, chain.seedConfidence);
    }
  }
  for (NodeId sink : clues.sinks())
    if (NodeId other = graph_.nodes[sink].primal; other != kNone && other != primal)
      support.isFollowed |= contains(makersFor(primal), other);
  float factor = support.types == 2 || support.isInner || clues.numBatched == 0 ? 1.0f : 0.5f;
  support.score =
      factor * (std::max(fit, 0.1f) + ties + links + (support.isFollowed ? 0.8f : 0.0f) + bonus);
  return support;
}

} // namespace hlotag::analysis
