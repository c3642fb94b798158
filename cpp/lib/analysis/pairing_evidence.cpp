// SPDX-License-Identifier: Apache-2.0
//
// What speaks for a pair: primitives, types, constants, shared values, neighbours in the graph.
#include "pairing_aligner.h"
#include "pairing_rules.h"

namespace hlotag::analysis {

using namespace ir;

namespace {

constexpr int kMaxDepth = 4; // of operations that pass cotangents on
constexpr size_t kMaxMakers = 32;
constexpr float kBroadcastFit = 1.2f; // of the sum that an operand leaves that was broadcast

} // namespace

/// The equations of that place that make or use `residual`.
void Aligner::addUsers(Value residual, KeyId key, NodeIds &users) {
  auto add = [&](NodeId id) {
    if (id != kNone && graph_.nodes[graph_.nodes[id].owner].key == key)
      addOnce(users, graph_.nodes[id].owner);
  };
  add(graph_.nodeOf(residual.definingOp()));
  size_t count = 0;
  for (OpOperand use : residual.uses()) {
    if (++count > kMaxUses)
      break;
    add(graph_.nodeOf(use.owner()));
  }
}

/// Cotangents come from operations of the same level, or from outside; all else is a residual.
Clues Aligner::cluesFor(NodeId id) {
  const Node &node = graph_.nodes[id];
  Clues clues(&arena_);
  clues.bucket = &bucketOf(node);
  std::vector<Value> given;
  clues.hasCotangent = node.hasRegions; // a region takes its values from around it
  clues.numBatched = node.order->numBatched;
  auto isSameLevel = [&](NodeId other) {
    const Node &maker = graph_.nodes[other];
    return maker.origin->transposed && maker.origin->rematted == node.origin->rematted &&
           maker.order->level == node.order->level;
  };
  auto see = [&](Value raw) {
    Value value = graph_.canonical(raw);
    NodeId source = graph_.nodeOf(value.definingOp());
    clues.hasCotangent |= source == kNone || isSameLevel(source);
    if (source != kNone && graph_.nodes[source].follows == id) {
      value = graph_.root(value); // broadcast for this operation
      source = graph_.nodeOf(value.definingOp());
    }
    if (source != kNone && isSameLevel(source) && graph_.isZero(graph_.nodes[source]))
      return; // made for this operation
    // Batching brings residuals into shape too.
    if (source != kNone && isSameLevel(source) && graph_.isShaping(graph_.nodes[source]))
      if (NodeId maker = graph_.nodeOf(graph_.root(value).definingOp());
          maker != kNone && graph_.nodes[maker].order->letters == node.order->base) {
        value = graph_.root(value);
        source = maker;
      }
    if (isSeed(node, value, source)) {
      clues.isSeeded = true;
      return;
    }
    if (source != kNone && isSameLevel(source)) {
      addOnce(clues.sources,
              graph_.nodes[source].follows == kNone ? source : graph_.nodes[source].follows);
      return;
    }
    addUsers(value, node.key, clues.users);
    value = graph_.inBranchOf(node.op, graph_.root(value));
    addUsers(value, node.key, clues.users);
    source = graph_.nodeOf(value.definingOp());
    if (source != kNone && graph_.nodes[source].origin->rematted &&
        graph_.nodes[source].primal != kNone) {
      const Node &copy = graph_.nodes[source];
      const Node &original = graph_.nodes[copy.primal];
      clues.certainty = std::min(clues.certainty, copy.confidence);
      if (copy.owner == source && copy.primitive == original.primitive &&
          copy.makes == original.makes)
        clues.residuals.push_back(graph_.root(original.op.results()[value.number()]));
      else
        clues.helps.push_back(copy.primal);
    } else if (source != kNone && !isSameLevel(source)) {
      clues.residuals.push_back(value);
      if (graph_.nodes[source].isApart)
        clues.certainty = std::min(clues.certainty, 0.85f);
    } else if (source == kNone &&
               (value.isBlockArgument() ? isForwardParameter(value) : raw.isBlockArgument()))
      given.push_back(value);
  };
  graph_.forEachInput(id, see);
  for (NodeId helped : clues.helps)
    addOnce(clues.users, helped);
  // What is handed to the program may be the first cotangent.
  Values &known = clues.sources.empty() ? clues.given : clues.residuals;
  known.insert(known.end(), given.begin(), given.end());
  clues.isZero = graph_.isZero(node);
  for (Value result : node.op.results()) {
    size_t count = 0;
    for (OpOperand use : result.uses()) {
      NodeId sink = graph_.nodeOf(use.owner());
      if (++count > kMaxUses)
        break;
      if (sink != kNone && isSameLevel(sink))
        addOnce(clues.sinks,
                graph_.nodes[sink].follows == kNone ? sink : graph_.nodes[sink].follows);
    }
  }
  return clues;
}

/// Whether `value`, made by `source` if that is a node, is a cotangent that the function or region
/// around `node` is handed.
bool Aligner::isSeed(const Node &node, Value value, NodeId source) {
  NodeId host = node.parent;
  if (source == kNone && value.isBlockArgument()) {
    Block owner = value.ownerBlock();
    return host == kNone ? isAcross() && owner == backward_.function.regions()[0].firstBlock()
                         : owner == node.op.block();
  }
  if (source == kNone || host == kNone || !graph_.nodes[source].origin->transposed)
    return false;
  return source < host || graph_.hostOf(graph_.nodes[source]) == host;
}

bool Aligner::isForwardParameter(Value argument) const {
  Block owner = argument.ownerBlock();
  if (owner == backward_.function.regions()[0].firstBlock())
    return !isAcross();
  return owner.parentOp().name() == graph_.ids().func;
}

/// Whether `equation` works on `value`, or made it for its derivative.
bool Aligner::isTied(Value value, NodeId equation) {
  auto [found, isNew] = touched_.try_emplace(equation);
  Values &touched = found->second;
  if (isNew) {
    const Node &node = graph_.nodes[equation];
    Traits traits = graph_.traits(node);
    bool usesResult = node.isOrphan || traits.usesOwnResult;
    for (NodeId id : graph_.membersOf(equation)) {
      NodeId main = graph_.nodes[id].follows == kNone ? id : graph_.nodes[id].follows;
      if (traits.usesOperand && (main == equation || graph_.nodes[main].tangentOf == equation))
        graph_.forEachInput(id, [&](Value input) { touched.push_back(graph_.root(input)); });
      bool isResult = id == equation || graph_.nodes[id].tangentOf == equation;
      if (!isResult || usesResult)
        for (Value result : graph_.nodes[id].op.results())
          touched.push_back(graph_.root(result));
    }
  }
  return contains(touched, value);
}

/// The equations whose cotangents the backward operations of `equation` make: those that made its
/// operands, and what they hand the same cotangent on to.
const NodeIds &Aligner::makersFor(NodeId equation) {
  auto [found, isNew] = makers_.try_emplace(equation);
  if (isNew)
    addMakers(equation, 0, found->second);
  return found->second;
}

void Aligner::addMakers(NodeId equation, int depth, NodeIds &makers) {
  for (NodeId id : graph_.membersOf(equation)) {
    // The cotangent of what is broadcast for an addition is a sum.
    if (depth > 0 && graph_.nodes[id].follows != kNone && graph_.isShaping(graph_.nodes[id]))
      continue;
    graph_.forEachInput(id, [&](Value input) {
      NodeId maker = graph_.definition(input);
      if (maker == kNone)
        return;
      NodeId owner = graph_.nodes[maker].owner;
      if (owner == equation || contains(makers, owner) || makers.size() >= kMaxMakers)
        return;
      makers.push_back(owner);
      // Batching brings operands into shape at the place of the equation.
      bool isShaped = graph_.isShaping(graph_.nodes[owner]) &&
                      graph_.nodes[owner].key == graph_.nodes[equation].key;
      if (depth < kMaxDepth && (isShaped || graph_.traits(graph_.nodes[owner]).passesCotangent))
        addMakers(owner, depth + 1, makers);
    });
  }
}

/// Whether `equation` made the operand of `consumer` that `cotangent` is the cotangent of: a
/// product's is computed from the other operand.
bool Aligner::feeds(NodeId equation, NodeId consumer, const Chain &chain, NodeId cotangent) {
  if (!contains(makersFor(consumer), equation))
    return false;
  // The operation that used a residual may be some steps before, of the same equation.
  for (int step = 0; step < 4; ++step) {
    uint32_t place = graph_.nodes[cotangent].place;
    if (place >= chain.nodes.size() || chain.nodes[place] != cotangent)
      return true;
    const Clues &clues = chain.clues[place];
    for (Value residual : clues.residuals) {
      NodeId maker = graph_.nodeOf(residual.definingOp());
      if (maker == kNone || graph_.nodes[maker].owner != equation)
        continue;
      for (NodeId member : graph_.membersOf(consumer))
        for (Value operand : graph_.nodes[member].op.operands())
          if (graph_.nodes[member].owner == consumer && !(graph_.root(operand) == residual) &&
              graph_.nodeOf(graph_.root(operand).definingOp()) != kNone)
            return false;
      return true;
    }
    NodeId before = kNone;
    for (NodeId source : clues.sources)
      if (graph_.nodes[source].primal == consumer && source != cotangent)
        before = source;
    if (before == kNone || !clues.residuals.empty())
      return true;
    cotangent = before;
  }
  return true;
}

bool Aligner::worksOn(NodeId equation, Value value) {
  bool found = false;
  for (NodeId member : graph_.membersOf(equation))
    graph_.forEachInput(member, [&](Value input) { found |= graph_.canonical(input) == value; });
  return found;
}

/// Whether `equation` works on a value in two ways, at least one of them through an addition.
bool Aligner::worksOnSumsOf(NodeId equation) {
  std::vector<NodeId> added;
  for (NodeId maker : makersFor(equation))
    if (graph_.traits(graph_.nodes[maker]).passesCotangent)
      added.push_back(maker);
  for (NodeId addition : added)
    for (Value operand : graph_.nodes[addition].op.operands()) {
      Value value = graph_.canonical(operand);
      if (!value.isBlockArgument() && graph_.nodeOf(value.definingOp()) == kNone)
        continue; // a constant
      if (worksOn(equation, value))
        return true;
      for (NodeId other : added)
        if (other != addition && worksOn(other, value))
          return true;
    }
  return false;
}

/// The equation whose backward code adds up cotangents: the one that made the last of them, if that
/// is the cotangent of a value that is used twice; or one before it, an addition, that hands on
/// its cotangent and computes nothing itself. `isSure` becomes false where it may be another.
NodeId Aligner::sumOwner(NodeId id, const Clues &clues, bool &isSure) {
  const Node &sum = graph_.nodes[id];
  NodeId last = *std::max_element(clues.sources.begin(), clues.sources.end());
  NodeId latest = graph_.nodes[last].primal;
  if (latest == kNone)
    return kNone;
  auto isHere = [&](NodeId equation) {
    const Node &node = graph_.nodes[equation];
    return node.key == sum.key &&
           (node.origin->trace == sum.origin->trace || sum.origin->checkpointed || isAcross());
  };
  // A derivative may consist of several terms.
  auto isOfLatest = [&](NodeId source) { return graph_.nodes[source].primal == latest; };
  if (clues.sources.size() > 1 && isHere(latest) &&
      std::all_of(clues.sources.begin(), clues.sources.end(), isOfLatest)) {
    // Or it works on a value and on a sum with that value: then it is the addition's.
    isSure = !worksOnSumsOf(latest);
    return latest;
  }
  // In some functions everything is at one place.
  isSure = bool(sum.origin->source);
  // An addition of which only one operand has a tangent is left out by JAX.
  size_t uses = 0;
  for (Value result : graph_.nodes[last].op.results())
    for (OpOperand use : result.uses())
      uses += use.owner() ? 1 : 0;
  NodeId addition = kNone;
  for (NodeId maker : makersFor(latest))
    if (isHere(maker) && graph_.traits(graph_.nodes[maker]).passesCotangent) {
      isSure &= addition == kNone && !isHere(latest);
      addition = addition == kNone ? maker : addition;
    }
  if (!isHere(latest))
    return addition;
  // A conversion to the same type leaves nothing in the backward pass, but what it converts may
  // have other uses; so may what it makes.
  for (NodeId maker : makersFor(latest)) {
    const Node &copy = graph_.nodes[maker];
    if (!isHere(maker) || copy.takes != copy.makes ||
        graph_.provenance().text(copy.primitive) != "convert_element_type")
      continue;
    isSure = false;
    Value original = graph_.canonical(copy.op.operands()[0]);
    for (NodeId source : clues.sources) {
      NodeId other = graph_.nodes[source].primal;
      if (source == last || other == kNone || worksOn(other, copy.op.results()[0]))
        continue;
      const NodeIds &makers = makersFor(other);
      if (worksOn(other, original) || std::any_of(makers.begin(), makers.end(),
                                                  [&](NodeId id) { return worksOn(id, original); }))
        return maker;
    }
  }
  return addition != kNone && uses > 1 ? addition : latest;
}

/// The equation outside of a loop's function that `at` was derived from, or kNone: JAX hoists what
/// a loop computes anew with the same result, and not its backward code.
NodeId Aligner::hoisted(const Chain &chain, size_t at) {
  const Node &node = graph_.nodes[chain.nodes[at]];
  bool isInLoop = call_ != kNone && graph_.nodes[call_].op.parent().name() == graph_.ids().whileOp;
  if (!isInLoop || chain.kind == Kind::Recomputed)
    return kNone;
  for (NodeId source : chain.clues[at].sources) {
    const Node &maker = graph_.nodes[source];
    if (maker.primal == kNone)
      continue;
    for (NodeId equation : makersFor(maker.primal)) {
      const Node &from = graph_.nodes[equation];
      bool isOutside = equation < forward_.begin || equation >= forward_.end;
      if (isOutside && from.origin->source == node.origin->source &&
          fitOf(chain, from.primitive, node.primitive) >= 1.0f &&
          std::find_first_of(node.takes.begin(), node.takes.end(), from.makes.begin(),
                             from.makes.end()) != node.takes.end())
        return equation;
    }
  }
  return kNone;
}

/// A cotangent comes in with the type of the equation's result, unless it comes from an operation
/// of the same equation, and goes out with the type of an operand.
int Aligner::typesOf(const Node &derived, NodeId primal, const Clues &clues, float &bonus) {
  const Node &from = graph_.nodes[primal];
  auto shares = [&](const Types &a, const Types &b) {
    if (std::find_first_of(a.begin(), a.end(), b.begin(), b.end()) != a.end())
      return 2;
    return clues.numBatched > 0 && isAnyAlike(a, b, clues.numBatched) ? 1 : 0;
  };
  int comesIn = shares(derived.takes, from.makes), goesOut = shares(derived.makes, from.takes);
  if (clues.numBatched > 0)
    for (NodeId member : graph_.membersOf(primal))
      if (member < primal && comesIn < 2 && graph_.nodes[member].follows == kNone)
        comesIn = std::max(comesIn, shares(derived.takes, graph_.nodes[member].makes));
  bonus = 0.35f * float(comesIn + goesOut);
  if (clues.sources.empty())
    return clues.isSeeded ? std::max(comesIn, 1) : 2;
  for (NodeId source : clues.sources) {
    const Node &other = graph_.nodes[source];
    if (other.key == derived.key && (other.primal == kNone || other.primal == primal))
      return std::max(comesIn, 1);
  }
  return comesIn;
}

bool Aligner::isAnyAlike(const Types &a, const Types &b, size_t numBatched) {
  return std::find_first_of(a.begin(), a.end(), b.begin(), b.end(),
                            [&](const void *x, const void *y) {
                              return graph_.isAlike(x, y, numBatched);
                            }) != a.end();
}

float Aligner::fitOf(const Chain &chain, TextId primal, TextId derived) {
  bool isRecomputed = chain.kind == Kind::Recomputed;
  uint64_t kind = isRecomputed ? 0 : chain.isLinearized ? 1 : 2;
  uint64_t key = uint64_t(primal) << 32 | derived << 2 | kind;
  auto [fit, isNew] = graph_.fits.try_emplace(key, 0.0f);
  if (!isNew)
    return fit->second;
  std::string_view source = graph_.provenance().text(primal);
  std::string_view target = graph_.provenance().text(derived);
  if (isRecomputed)
    fit->second = source == target ? 3.0f : residualOf(source, target) ? 1.5f : 0.0f;
  else
    fit->second = transposeFit(source, target);
  if (fit->second == 0 && chain.isLinearized)
    fit->second = linearizedFit(source, target);
  return fit->second;
}

/// Whether `equation` broadcasts a value implicitly.
bool Aligner::broadcastsOperand(NodeId equation) {
  for (NodeId member : graph_.membersOf(equation)) {
    const Node &node = graph_.nodes[member];
    if (node.follows != equation || !graph_.isShaping(node))
      continue;
    Value value = graph_.canonical(node.op.operands()[0]);
    if (value.isBlockArgument() || graph_.nodeOf(value.definingOp()) != kNone)
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
    for (Value residual : clues.residuals)
      if (graph_.nodeOf(residual.definingOp()) == primal)
        fit = 1.0f;
  }
  if (fit == 0 && chain.kind == Kind::Transposed)
    for (NodeId member : graph_.membersOf(primal))
      if (graph_.nodes[member].isShape && graph_.hasUnitDimension(graph_.nodes[member].takes[0]))
        fit = std::max(fit, fitOf(chain, graph_.nodes[member].primitive, to.primitive));
  // The transpose of a broadcast is a sum, which loses dimensions: only those of size 1 are made
  // anew.
  if (chain.kind == Kind::Transposed && traits.isBroadcast && graph_.isShaping(to) &&
      !graph_.hasUnitDimension(from.takes[0]))
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
  for (Value residual : clues.residuals) {
    if (isTied(residual, primal))
      ++support.numTied;
    else if (!isFree)
      return support;
  }
  if (support.numTied > 0)
    ties = 1.0f + float(support.numTied) / float(clues.residuals.size());
  for (Value value : clues.given)
    if (isTied(value, primal))
      ties = 2.0f;
  for (NodeId helped : clues.helps) {
    if (helped == primal)
      ties = 2.0f;
    else if (!isFree)
      return support;
  }
  support.isTied = ties > 0;
  if (to.constant && from.constant) {
    fit += from.constant == to.constant ? 2.0f : -0.8f;
    support.isTied |= from.constant == to.constant;
  } else if (from.constant && chain.kind == Kind::Transposed && to.name == from.name) {
    fit -= 1.0f; // multiplying by a constant transposes to the same
  } else if (to.constant && chain.kind == Kind::Transposed) {
    fit -= 0.5f;
  }
  float bonus = 0;
  support.types = typesOf(to, primal, clues, bonus);
  if (!support.types && !isSum && chain.kind == Kind::Transposed)
    return support;
  auto isAlike = [&](const Types &a, const Types &b) { return isAnyAlike(a, b, clues.numBatched); };
  float links = 0;
  auto link = [&](NodeId neighbour, float weight) {
    float confidence = graph_.nodes[neighbour].confidence;
    links = std::max(links, weight);
    support.linkConfidence = std::min(support.linkConfidence, confidence > 0 ? confidence : 1.0f);
  };
  if (isSum && !clues.sources.empty()) {
    bool isSure = true;
    if (sumOwner(chain.nodes[at], clues, isSure) == primal) {
      support.isLinked = true;
      if (!isSure)
        support.linkConfidence = 0.85f;
      link(*std::max_element(clues.sources.begin(), clues.sources.end()), 3.0f);
      bool isInside = std::all_of(clues.sources.begin(), clues.sources.end(), [&](NodeId source) {
        return graph_.nodes[source].primal == primal;
      });
      if (from.order->isDerived && (!isInside || clues.isSeeded))
        support.linkConfidence = std::min(support.linkConfidence, 0.85f);
    }
  } else {
    for (NodeId source : clues.sources) {
      NodeId other = graph_.nodes[source].primal;
      if (other == primal) {
        // A loop or conditional has one in the backward pass.
        if (to.hasRegions && graph_.nodes[source].name == to.name && from.name == to.name &&
            graph_.nodes[source].last > source)
          return {};
        support.isClosed = isAlike(graph_.nodes[source].makes, from.takes) &&
                           !isAlike(graph_.nodes[source].makes, from.makes);
        // What is made of an operand's cotangent is of the equation that made the operand.
        if (support.isClosed && !isAlike(to.makes, from.takes))
          continue;
        support.isInner = true;
        link(source, 0.6f);
      } else if (other != kNone && feeds(primal, other, chain, source)) {
        support.isLinked = true;
        link(source, 1.5f);
      }
    }
  }
  if (clues.sources.empty() && contains(chain.outputs, primal)) {
    links = std::max(links, 0.8f);
    if (clues.isSeeded && support.types == 2) {
      support.isLinked = true;
      support.linkConfidence = std::min(0.97f, chain.seedConfidence);
    }
  }
  for (NodeId sink : clues.sinks)
    if (NodeId other = graph_.nodes[sink].primal; other != kNone && other != primal)
      support.isFollowed |= contains(makersFor(primal), other);
  float factor = support.types == 2 || support.isInner || clues.numBatched == 0 ? 1.0f : 0.5f;
  support.score =
      factor * (std::max(fit, 0.1f) + ties + links + (support.isFollowed ? 0.8f : 0.0f) + bonus);
  return support;
}

} // namespace hlotag::analysis
