// SPDX-License-Identifier: Apache-2.0
//
// Which equations hand cotangents to each other, and what that says of sums and of hoisted code.
#include "pairing_aligner.h"
#include "pairing_rules.h"

namespace hlotag::analysis {

using namespace ir;

namespace {

constexpr int kMaxDepth = 4; // of operations that pass cotangents on
constexpr size_t kMaxMakers = 32;

} // namespace

/// The equations whose cotangents the backward operations of `equation` make: those that made its
/// operands, and what they hand the same cotangent on to.
NodeIds Aligner::makersFor(NodeId equation) {
  Equation &known = *equations_.insert(equation).first;
  if (!known.knowsMakers) {
    known.knowsMakers = true;
    addMakers(equation, 0, known.makers);
  }
  return known.makers;
}

void Aligner::addMakers(NodeId equation, int depth, NodeIds &makers) {
  for (NodeId id : graph_.membersOf(equation)) {
    // The cotangent of what is broadcast for an addition is a sum.
    if (depth > 0 && graph_.nodes[id].follows != kNone && graph_.isShaping(graph_.nodes[id]))
      continue;
    graph_.forEachInput(id, [&](ValueId input) {
      NodeId maker = graph_.definition(input);
      if (maker == kNone)
        return;
      NodeId owner = graph_.nodes[maker].owner;
      if (owner == equation || makers.size() >= kMaxMakers || contains(makers, owner))
        return;
      makers.push_back(arena_, owner);
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
    for (ValueId residual : clues.residuals()) {
      NodeId maker = values_.maker(residual);
      if (maker == kNone || graph_.nodes[maker].owner != equation)
        continue;
      for (NodeId member : graph_.membersOf(consumer))
        for (ValueId operand : graph_.operands(member))
          if (graph_.nodes[member].owner == consumer && graph_.root(operand) != residual &&
              values_.maker(graph_.root(operand)) != kNone)
            return false;
      return true;
    }
    NodeId before = kNone;
    for (NodeId source : clues.sources())
      if (graph_.nodes[source].primal == consumer && source != cotangent)
        before = source;
    if (before == kNone || !clues.residuals().empty())
      return true;
    cotangent = before;
  }
  return true;
}

bool Aligner::worksOn(NodeId equation, ValueId value) {
  bool found = false;
  for (NodeId member : graph_.membersOf(equation))
    graph_.forEachInput(member, [&](ValueId input) { found |= values_.canonical(input) == value; });
  return found;
}

/// Whether `equation` works on a value in two ways, at least one of them through an addition.
bool Aligner::worksOnSumsOf(NodeId equation) {
  std::vector<NodeId> added;
  for (NodeId maker : makersFor(equation))
    if (graph_.traits(graph_.nodes[maker]).passesCotangent)
      added.push_back(maker);
  for (NodeId addition : added)
    for (ValueId operand : graph_.operands(addition)) {
      ValueId value = values_.canonical(operand);
      if (values_.isConstant(value))
        continue;
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
  NodeId last = *std::max_element(clues.sources().begin(), clues.sources().end());
  NodeId latest = graph_.nodes[last].primal;
  if (latest == kNone)
    return kNone;
  auto isHere = [&](NodeId equation) {
    const Node &node = graph_.nodes[equation];
    return node.key == sum.key && (node.trace == sum.trace || sum.isCheckpointed || isAcross());
  };
  // A derivative may consist of several terms.
  auto isOfLatest = [&](NodeId source) { return graph_.nodes[source].primal == latest; };
  if (clues.sources().size() > 1 && isHere(latest) &&
      std::all_of(clues.sources().begin(), clues.sources().end(), isOfLatest)) {
    // Or it works on a value and on a sum with that value: then it is the addition's.
    isSure = !worksOnSumsOf(latest);
    return latest;
  }
  // In some functions everything is at one place.
  isSure = bool(sum.origin->source);
  // An addition of which only one operand has a tangent is left out by JAX.
  size_t uses = 0;
  for (ValueId result : graph_.results(last))
    uses += values_.uses(result).size();
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
    if (!isHere(maker) || graph_.makes(copy) != copy.takes ||
        graph_.provenance().text(copy.primitive) != "convert_element_type")
      continue;
    isSure = false;
    ValueId original = values_.canonical(graph_.operands(maker)[0]);
    for (NodeId source : clues.sources()) {
      NodeId other = graph_.nodes[source].primal;
      if (source == last || other == kNone || worksOn(other, copy.firstResult))
        continue;
      NodeIds makers = makersFor(other);
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
  NodeId host = call_ == kNone ? kNone : graph_.parentOf(graph_.nodes[call_]);
  bool isInLoop = host != kNone && graph_.nodes[host].name == graph_.ids().whileOp;
  if (!isInLoop || chain.kind == Kind::Recomputed)
    return kNone;
  NodeId found = kNone;
  for (NodeId source : chain.clues[at].sources()) {
    const Node &maker = graph_.nodes[source];
    if (maker.primal == kNone)
      continue;
    for (NodeId equation : makersFor(maker.primal)) {
      const Node &from = graph_.nodes[equation];
      Span<TypeId> makes = graph_.makes(from);
      if (from.origin->source != node.origin->source ||
          fitOf(chain, from.primitive, node.primitive) < 1.0f ||
          std::find_first_of(node.takes.begin(), node.takes.end(), makes.begin(), makes.end()) ==
              node.takes.end())
        continue;
      if (equation >= forward_.begin && equation < forward_.end)
        return kNone; // it may be of this one
      found = found == kNone ? equation : found;
    }
  }
  return found;
}

} // namespace hlotag::analysis
