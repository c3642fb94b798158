// SPDX-License-Identifier: Apache-2.0
//
// Forward mode over reverse mode: which operations are tangents, and of which operation.
//
// Both have one name and one place. Data flow tells them apart: what is not linear works on
// primal values only, and primal values depend on no tangent. Forward code adds with `add_any` only
// where it adds tangents. What is a tangent shares all operands with the operation it belongs to
// but for one, and instead of that works on its tangent.
#include "pairing_graph.h"
#include "pairing_rules.h"

#include <algorithm>

namespace hlotag::analysis {

using namespace ir;

namespace {

constexpr size_t kMaxOperands = 64;
constexpr int kMaxSteps = 16; // back to the operation that a tangent belongs to
constexpr int kMaxDepth = 4;  // of additions that a tangent passes unchanged

class TangentFinder {
public:
  /// `residualOf`: what each node would be a residual of, or kNone.
  TangentFinder(PairingGraph &graph, const FunctionNodes &range,
                const std::vector<NodeId> &residualOf)
      : graph_(graph), values_(graph.values()), range_(range), residualOf_(residualOf) {}
  /// Whether there are any.
  bool run();

private:
  enum Color : unsigned char { Unknown, Primal, Tangent };

  Node &node(NodeId id) { return graph_.nodes[id]; }
  size_t at(NodeId id) const { return id - range_.begin; }
  bool isIn(NodeId id) const {
    return id != kNone && id >= range_.begin && id < range_.end && isTwice_[at(id)];
  }
  /// What made `value`, if that was differentiated twice.
  NodeId maker(ValueId value) {
    NodeId id = graph_.definition(value);
    return isIn(id) ? id : kNone;
  }
  std::string_view primitiveOf(NodeId id);
  Linearity linearity(NodeId id);
  bool mayBeTangent(ValueId value);
  bool isConstant(ValueId value);

  bool findTwice();
  void paint(NodeId id, Color color);
  void paintPrimal(ValueId value);
  void spread();
  void infer(NodeId id);
  void paintDerivatives();
  bool pairUp();

  template <class Visit> void forEachBefore(NodeId id, Visit visit);
  NodeId equationOf(NodeId id) const;
  NodeId primalOf(NodeId tangent);
  NodeId shapedFor(NodeId id);
  NodeId primalOfTerms(NodeId sum);
  bool isLinearized(NodeId tangent, NodeId primal);
  bool isDerivative(NodeId tangent, NodeId primal);
  bool isTangentOf(ValueId tangent, ValueId value, int depth = 0);
  bool isMirrored(ValueId tangent, ValueId value);
  bool isOf(ValueId value, NodeId primal);

  PairingGraph &graph_;
  const ValueGraph &values_;
  const FunctionNodes &range_;
  const std::vector<NodeId> &residualOf_;
  std::vector<char> isTwice_; // differentiated twice and not transposed
  std::vector<Color> colors_;
  std::vector<NodeId> previous_; // the one before at the same place
  std::vector<NodeId> pending_;
  ir::FlatMap<ValueId, bool> isPrimal_;    // of values that others made
  ir::FlatMap<ValueId, ValueId> tangents_; // of those
  bool isConsistent_ = true;
};

std::string_view TangentFinder::primitiveOf(NodeId id) {
  const Node &main = node(node(id).isShape ? id : node(id).owner);
  return graph_.provenance().text(main.primitive);
}

Linearity TangentFinder::linearity(NodeId id) {
  return graph_.isShaping(node(id)) ? Linearity::Sum : linearityOf(primitiveOf(id));
}

bool TangentFinder::isConstant(ValueId value) {
  value = graph_.root(value);
  return values_.isConstant(value);
}

bool TangentFinder::mayBeTangent(ValueId value) {
  NodeId made = maker(value);
  if (made != kNone)
    return colors_[at(made)] != Primal;
  return !isConstant(value) && !isPrimal_.find(graph_.root(value));
}

/// Whether there are any operations that were differentiated twice.
bool TangentFinder::findTwice() {
  size_t count = range_.end - range_.begin;
  isTwice_.assign(count, false);
  colors_.assign(count, Unknown);
  previous_.assign(count, kNone);
  std::unordered_map<KeyId, NodeId> last;
  for (NodeId id = range_.begin; id < range_.end; ++id) {
    const Node &own = node(id);
    if (own.isRematted || graph_.provenance().text(own.order->letters) != "jj")
      continue;
    // Results of a call or loop are primal or tangent each.
    bool isOne = own.numResults == 1 && graph_.operands(id).size() <= kMaxOperands &&
                 own.last == id && !graph_.functionOf(own);
    if (!isOne)
      continue;
    isTwice_[at(id)] = true;
    NodeId &before = last.try_emplace(own.key, kNone).first->second;
    previous_[at(id)] = before;
    before = id;
  }
  return !last.empty();
}

bool TangentFinder::run() {
  if (!findTwice())
    return false;
  for (NodeId id = range_.begin; id < range_.end; ++id) {
    if (!isIn(id))
      continue;
    pending_.push_back(id);
    if (linearity(id) == Linearity::None)
      paint(id, Primal);
    else if (primitiveOf(id) == "add_any")
      paint(id, Tangent);
  }
  spread();
  paintDerivatives();
  return isConsistent_ && pairUp();
}

void TangentFinder::paint(NodeId id, Color color) {
  Color &known = colors_[at(id)];
  isConsistent_ &= known == Unknown || known == color;
  if (known != Unknown)
    return;
  known = color;
  pending_.push_back(id);
  for (const Use &use : values_.uses(node(id).firstResult))
    if (isIn(use.user))
      pending_.push_back(use.user);
}

void TangentFinder::paintPrimal(ValueId value) {
  if (NodeId made = maker(value); made != kNone)
    paint(made, Primal);
  else
    isPrimal_.insert(graph_.root(value));
}

void TangentFinder::spread() {
  while (!pending_.empty() && isConsistent_) {
    NodeId id = pending_.back();
    pending_.pop_back();
    infer(id);
  }
}

/// Paints an operation after what it works on, and that after the operation.
void TangentFinder::infer(NodeId id) {
  Linearity kind = linearity(id);
  Span<ValueId> operands = graph_.operands(id);
  bool isSum = kind == Linearity::Sum;
  bool allPrimal = !operands.empty();
  std::vector<NodeId> linear; // what may be tangents
  size_t numOpen = 0;         // of those
  for (size_t number = 0; number < operands.size(); ++number) {
    ValueId operand = operands[number];
    NodeId made = maker(operand);
    bool isPrimal = made == kNone ? isConstant(operand) : colors_[at(made)] == Primal;
    allPrimal &= isPrimal;
    if (isSum && !graph_.isShaping(node(id)) && !isLinearIn(primitiveOf(id), intptr_t(number))) {
      paintPrimal(operand);
      continue;
    }
    numOpen += mayBeTangent(operand);
    if (made == kNone)
      continue;
    linear.push_back(made);
    if (colors_[at(made)] == Tangent)
      paint(id, Tangent);
    if (isSum && isPrimal)
      paint(id, Primal); // no tangent is added to a value
  }
  if (allPrimal)
    paint(id, Primal);
  if (colors_[at(id)] == Primal)
    for (ValueId operand : operands)
      paintPrimal(operand);
  if (colors_[at(id)] != Tangent)
    return;
  for (NodeId made : linear)
    if (isSum || (kind == Linearity::Product && numOpen == 1 && colors_[at(made)] != Primal))
      paint(made, Tangent);
}

/// Calls `visit` with the operations before at the same place, the nearest first, until it is true.
template <class Visit> void TangentFinder::forEachBefore(NodeId id, Visit visit) {
  const Node &own = node(id);
  NodeId before = previous_[at(id)];
  for (int step = 0; step < kMaxSteps && before != kNone; ++step, before = previous_[at(before)]) {
    const Node &other = node(before);
    if (other.follows == kNone && other.trace == own.trace &&
        graph_.parentOf(other) == graph_.parentOf(own) && visit(before))
      return;
  }
}

/// What multiplies a residual of an operation with something that is made as its operand is.
void TangentFinder::paintDerivatives() {
  for (NodeId id = range_.begin; id < range_.end && isConsistent_; ++id) {
    if (!isIn(id) || colors_[at(id)] != Unknown || linearity(id) != Linearity::Product)
      continue;
    Span<ValueId> operands = graph_.operands(id);
    if (operands.size() != 2)
      continue;
    ValueId a = operands[0], b = operands[1];
    forEachBefore(id, [&](NodeId primal) {
      if (linearity(primal) != Linearity::None || graph_.operands(primal).size() != 1)
        return false;
      ValueId operand = graph_.operands(primal)[0];
      bool isTangent = (isMirrored(a, operand) && isOf(b, primal)) ||
                       (isMirrored(b, operand) && isOf(a, primal));
      if (isTangent)
        paint(id, Tangent);
      return isTangent;
    });
    spread();
  }
}

/// Whether `tangent` is made as `value` is, at its place.
bool TangentFinder::isMirrored(ValueId tangent, ValueId value) {
  NodeId made = maker(graph_.root(tangent)), original = maker(graph_.root(value));
  if (made == kNone || original == kNone || made <= original || colors_[at(made)] == Primal ||
      colors_[at(original)] == Tangent)
    return false;
  const Node &copy = node(made), &first = node(original);
  Span<ValueId> operands = graph_.operands(made), others = graph_.operands(original);
  if (copy.origin != first.origin || copy.name != first.name || operands.size() != others.size())
    return false;
  bool isShared = operands.size() == 1;
  for (size_t i = 0; i < operands.size(); ++i)
    isShared |= graph_.root(operands[i]) == graph_.root(others[i]);
  return isShared;
}

/// The equation that `id` would be a residual of, or itself.
NodeId TangentFinder::equationOf(NodeId id) const {
  for (int step = 0; step < kMaxSteps && residualOf_[id] != kNone; ++step)
    id = residualOf_[id];
  return id;
}

/// Whether the derivative of `primal` uses `value`.
bool TangentFinder::isOf(ValueId value, NodeId primal) {
  value = graph_.root(value);
  NodeId made = values_.maker(value);
  if (usesOperand(primitiveOf(primal)))
    for (ValueId operand : graph_.operands(primal))
      if (graph_.root(operand) == value)
        return true;
  if (made == primal)
    return usesOwnResult(primitiveOf(primal));
  for (int step = 0; step < kMaxSteps && made != kNone && made != primal; ++step)
    made = residualOf_[made];
  return made == primal;
}

bool TangentFinder::pairUp() {
  for (NodeId id = range_.begin; id < range_.end; ++id)
    if (isIn(id) && colors_[at(id)] == Tangent && node(id).follows == kNone && node(id).owner == id)
      node(id).tangentOf = primalOf(id);
  for (NodeId id = range_.end; id-- > range_.begin;) {
    Node &own = node(id);
    if (!isIn(id) || own.tangentOf != kNone || own.owner != id)
      continue;
    own.tangentOf = own.follows != kNone ? node(own.follows).tangentOf : shapedFor(id);
    // What works on values may be an equation of its own.
    own.isShape = own.tangentOf != kNone && own.follows == kNone && colors_[at(id)] != Tangent;
  }
  bool isAny = false;
  for (NodeId id = range_.begin; id < range_.end; ++id)
    if (node(id).tangentOf != kNone) {
      node(id).owner = node(id).tangentOf;
      isAny = true;
    }
  return isAny;
}

/// The operation whose tangent needs what `id` brings into shape, if nothing else does, as batching
/// does it; or kNone.
NodeId TangentFinder::shapedFor(NodeId id) {
  NodeId primal = kNone;
  if (!graph_.isShaping(node(id)))
    return kNone;
  for (const Use &use : values_.uses(node(id).firstResult)) {
    NodeId user = use.user;
    if (!isIn(user) || node(user).key != node(id).key || node(user).tangentOf == kNone ||
        (primal != kNone && primal != node(user).tangentOf))
      return kNone;
    primal = node(user).tangentOf;
  }
  return primal;
}

/// The operation that `tangent` belongs to, or kNone if that may be another one.
NodeId TangentFinder::primalOf(NodeId tangent) {
  if (primitiveOf(tangent) == "add_any")
    if (NodeId primal = primalOfTerms(tangent); primal != kNone)
      return primal;
  NodeId found = kNone;
  bool isSure = true;
  forEachBefore(tangent, [&](NodeId primal) {
    if (colors_[at(primal)] == Tangent || node(primal).owner != primal ||
        !(isLinearized(tangent, primal) || isDerivative(tangent, primal)))
      return false;
    isSure = found == kNone || equationOf(found) == equationOf(primal);
    found = found == kNone ? primal : found;
    return !isSure;
  });
  if (found == kNone || !isSure)
    return kNone;
  // A value has one tangent.
  Span<ValueId> own = graph_.operands(tangent), original = graph_.operands(found);
  for (size_t i = 0; i < own.size() && own.size() == original.size(); ++i) {
    ValueId seed = graph_.root(own[i]), value = graph_.root(original[i]);
    if (maker(seed) == kNone && !(seed == value) && isTangentOf(own[i], original[i]))
      *tangents_.insert(value).first = seed;
  }
  return found;
}

/// The terms of a tangent belong to one operation.
NodeId TangentFinder::primalOfTerms(NodeId sum) {
  NodeId common = kNone;
  for (ValueId operand : graph_.operands(sum)) {
    NodeId term = maker(graph_.root(operand));
    NodeId primal = term == kNone ? kNone : node(term).tangentOf;
    if (primal == kNone || (common != kNone && primal != common) ||
        node(primal).key != node(sum).key)
      return kNone;
    common = primal;
  }
  return common;
}

/// Whether `tangent` does with the tangents of some operands what `primal` does with those.
bool TangentFinder::isLinearized(NodeId tangentId, NodeId primalId) {
  const Node &tangent = node(tangentId), &primal = node(primalId);
  Span<ValueId> own = graph_.operands(tangentId), original = graph_.operands(primalId);
  std::string_view name = graph_.provenance().text(tangent.primitive);
  if (name == "neg" && graph_.provenance().text(primal.primitive) == "sub" && original.size() == 2)
    return isTangentOf(own[0], original[1]);
  bool isSame = tangent.name == primal.name && own.size() == original.size();
  if (!isSame || (graph_.makes(tangent) == graph_.makes(primal) &&
                  graph_.attributesOf(tangent) != graph_.attributesOf(primal)))
    return false;
  bool isAny = false;
  for (size_t i = 0; i < own.size(); ++i) {
    bool isTangent = isTangentOf(own[i], original[i]);
    isAny |= isTangent;
    if (!isTangent && !(graph_.root(own[i]) == graph_.root(original[i])))
      return false;
  }
  return isAny;
}

/// Whether `tangent` may be a step of the derivative of `primal`, which is not linear.
bool TangentFinder::isDerivative(NodeId tangent, NodeId primal) {
  std::string_view from = primitiveOf(primal), to = primitiveOf(tangent);
  bool isPlain = linearityOf(from) != Linearity::None && from != "div";
  if (isPlain || !(transposeFit(from, to) > 0 || residualOf(from, to)))
    return false;
  bool isStep = false, isMixed = false; // it works on such a step, and on values
  bool isAny = false;
  for (ValueId operand : graph_.operands(tangent)) {
    NodeId made = maker(graph_.root(operand));
    bool isOwn = made != kNone && node(made).tangentOf == primal;
    bool isTangent = isOwn;
    for (ValueId original : graph_.operands(primal))
      isTangent = isTangent || isTangentOf(operand, original);
    bool isValue = !isTangent && isOf(operand, primal);
    if (!isTangent && !isValue && !isConstant(operand))
      return false;
    isStep |= isOwn;
    isMixed |= isValue;
    isAny |= isTangent;
  }
  return isAny && (isStep || isMixed);
}

/// Whether `tangent` is that of `value`, as far as that is known: others may have made both.
bool TangentFinder::isTangentOf(ValueId tangent, ValueId value, int depth) {
  if (isConstant(tangent) || isConstant(value))
    return false;
  NodeId made = maker(graph_.root(tangent)), original = maker(graph_.root(value));
  if (made == kNone && original == kNone) {
    ValueId *known = tangents_.find(graph_.root(value));
    return known ? *known == graph_.root(tangent)
                 : graph_.isAlike(values_.typeOf(tangent), values_.typeOf(value), 1);
  }
  if (original == kNone)
    return false;
  if (made != kNone && node(made).tangentOf != kNone &&
      node(node(made).tangentOf).owner == node(original).owner)
    return true;
  // A term without a tangent adds nothing.
  if (depth == kMaxDepth || !passesCotangent(primitiveOf(original)))
    return false;
  for (ValueId operand : graph_.operands(original))
    if (isTangentOf(tangent, operand, depth + 1))
      return true;
  return false;
}

} // namespace

bool PairingGraph::findTangents(const FunctionNodes &range, const std::vector<NodeId> &residualOf) {
  return hasTwice && TangentFinder(*this, range, residualOf).run();
}

} // namespace hlotag::analysis
