// SPDX-License-Identifier: Apache-2.0
#include "transposition.h"

#include <algorithm>

namespace hlotag::derivation {
namespace {

constexpr size_t kMaxHandedOn = 32; // values that share a cotangent through sums
constexpr size_t kMaxHops = 256;    // consecutive equations that hand on their cotangent
constexpr size_t kMaxRounds = 16;

} // namespace

Transposition::Transposition(Equations &equations, const Table &table)
    : all_(equations.equations), values_(equations.values), table_(table),
      made_(listBy(all_, values_.size(), &Equation::outs)),
      users_(listBy(all_, values_.size(), &Equation::ins)), candidates_(all_.size()),
      only_(all_.size(), kNone), cotangents_(all_.size()), isLive_(all_.size()),
      isOfDead_(all_.size()), isDifferentiated_(values_.size()), tangents_(values_.size(), kNone) {
  calledAt_.assign(values_.size(), kNone);
  for (const Site &site : equations.sites)
    for (ValueId out : site.outs)
      if (site.isDerived)
        calledAt_[out] = site.place;
  findPrimals();
  findUnknownPlaces();
  bool isMore = true; // whether the last round found derivatives of dead code
  for (size_t round = 0; round < kMaxRounds && isMore; ++round) {
    replay();
    isMore = findDead();
  }
}

void Transposition::replay() {
  std::fill(isLive_.begin(), isLive_.end(), false);
  for (EquationId id = 0; id < all_.size(); ++id) {
    candidates_[id].clear();
    if (!isOfDead_[id])
      propose(id);
    update(id, &Transposition::hint);
  }
  findLive();
  for (size_t round = 0; round < kMaxRounds && prune(); ++round)
    findLive();
}

void Transposition::findPrimals() {
  primalOf_.assign(all_.size(), kNone);
  for (EquationId id = 0; id < all_.size(); ++id) {
    if (emits(id))
      continue;
    PrimalId primal = primalOf_[id] = knownPrimal(all_[id]);
    if (primal == kNone)
      primal = primalOf_[id] = addPrimal(all_[id]);
    if (!all_[id].isCopy)
      primals_[primal].originals.push_back(id);
  }
  for (PrimalId id = 0; id < primals_.size(); ++id)
    for (ValueId out : primals_[id].outs)
      addOnce(*at_.insert(keyOf(primals_[id].place, tangentOf(out))).first, id);
}

/// Returns the primal of an earlier equation that computes the same; kNone if there is none.
PrimalId Transposition::knownPrimal(const Equation &equation) const {
  const std::vector<PrimalId> *alike =
      equation.outs.empty() ? nullptr : at_.find(keyOf(equation.place, equation.outs[0]));
  for (size_t i = 0; alike && i < alike->size(); ++i)
    if (const Primal &primal = primals_[(*alike)[i]];
        primal.primitive == equation.primitive && primal.outs == equation.outs)
      return (*alike)[i];
  return kNone;
}

PrimalId Transposition::addPrimal(const Equation &equation) {
  auto id = PrimalId(primals_.size());
  const Row *row = table_.row(equation.primitive);
  primals_.push_back({row, equation.place, equation.primitive, equation.ins, equation.outs});
  if (row)
    for (const Node &node : row->nodes)
      addLast(*byNode_.insert(keyOf(equation.place, node.primitive)).first, id);
  for (const std::vector<ValueId> *list : {&equation.ins, &equation.outs})
    for (ValueId value : *list)
      addOnce(*at_.insert(keyOf(equation.place, value)).first, id);
  return id;
}

// --- Tangents ------------------------------------------------------------------------------------

/// Returns the value whose tangent `value` shares: `x + constant` has the tangent of `x`.
ValueId Transposition::tangentOf(ValueId value) const {
  if (tangents_[value] != kNone)
    return tangents_[value];
  ValueId result = value;
  for (size_t hop = 0; hop < kMaxHops; ++hop) {
    ValueId from = kNone;
    for (EquationId id : made_[result]) {
      if (emits(id))
        continue;
      const Primal &primal = primals_[primalOf_[id]];
      const Row *row = primal.row;
      if (!row || row->handedOn.empty() || handsOnToSeveral(primal))
        continue;
      for (uint8_t operand : row->handedOn)
        if (operand < primal.ins.size() && !values_[primal.ins[operand]].isConstant &&
            values_[primal.ins[operand]].type == values_[result].type)
          from = primal.ins[operand];
    }
    if (from == kNone)
      break;
    result = from;
  }
  return tangents_[value] = result;
}

bool Transposition::handsOnToSeveral(const Primal &primal) const {
  return std::count_if(primal.ins.begin(), primal.ins.end(),
                       [&](ValueId in) { return !values_[in].isConstant; }) > 1;
}

/// Returns the values that get the same cotangent as `value`, nearest first: itself and, for a sum,
/// the operands. Bounded: an equation whose cotangent comes from further away is not found.
const std::vector<ValueId> &Transposition::handedOn(ValueId value) const {
  auto [found, isNew] = handedOn_.insert(value);
  if (!isNew)
    return *found;
  std::vector<ValueId> result{tangentOf(value)};
  for (size_t at = 0; at < result.size() && result.size() < kMaxHandedOn; ++at)
    for (EquationId id : made_[result[at]]) {
      const Primal *primal = emits(id) ? nullptr : &primals_[primalOf_[id]];
      if (primal && primal->row && handsOnToSeveral(*primal))
        for (ValueId in : handedOnBy(*primal))
          addOnce(result, tangentOf(in));
    }
  return *handedOn_.insert(value).first = std::move(result);
}

bool Transposition::isHandedOnTo(const std::vector<ValueId> &from, ValueId value) const {
  return std::any_of(from.begin(), from.end(),
                     [&](ValueId of) { return contains(handedOn(of), tangentOf(value)); });
}

/// Returns the operands that get the cotangent of the result unchanged.
std::vector<ValueId> Transposition::handedOnBy(const Primal &primal) const {
  std::vector<ValueId> operands;
  for (uint8_t operand : primal.row->handedOn)
    if (operand < primal.ins.size() && !values_[primal.ins[operand]].isConstant &&
        values_[primal.ins[operand]].type == values_[primal.outs[0]].type)
      operands.push_back(primal.ins[operand]);
  return operands;
}

/// Replaces `values` by all values that get their cotangents.
void Transposition::closeOver(std::vector<ValueId> &values) const {
  std::vector<ValueId> all;
  for (ValueId value : values)
    for (ValueId other : handedOn(value))
      addOnce(all, other);
  values = std::move(all);
}

const Transposition::Cotangent *Transposition::hint(ValueId value) const {
  for (EquationId id : made_[value])
    if (emits(id))
      return &cotangents_[id];
  return nullptr;
}

const Transposition::Cotangent *Transposition::cotangent(ValueId value) const {
  static const Cotangent unknown;
  for (EquationId id : made_[value])
    if (emits(id))
      return isLive_[id] ? &cotangents_[id] : &unknown;
  return nullptr;
}

bool Transposition::isCotangentOf(ValueId value, const Primal &primal) const {
  bool hasType = std::any_of(primal.outs.begin(), primal.outs.end(),
                             [&](ValueId out) { return isCotangentType(value, out); });
  if (!hasType)
    return false;
  const Cotangent *of = cotangent(value);
  return !of || !of->isKnown ||
         std::any_of(primal.outs.begin(), primal.outs.end(),
                     [&](ValueId out) { return isHandedOnTo(of->of, out); });
}

/// Returns the operands of the primal whose cotangent the equation makes if it is `candidate`.
std::vector<ValueId> Transposition::madeFor(EquationId id, Candidate candidate) const {
  const Primal &primal = primals_[candidate.primal];
  std::vector<ValueId> found;
  for (uint8_t operand : primal.row->nodes[candidate.node].operands)
    if (operand < primal.ins.size() && isCotangentType(all_[id].outs[0], primal.ins[operand]))
      found.push_back(primal.ins[operand]);
  return found;
}

/// Returns the values that get a cotangent of both `a` and `b`; members of `a` and `b` are
/// preferred.
std::vector<ValueId> Transposition::common(const std::vector<ValueId> &a,
                                           const std::vector<ValueId> &b) const {
  std::vector<ValueId> allOfA = a, allOfB = b, both;
  closeOver(allOfA);
  closeOver(allOfB);
  auto addThose = [&](const std::vector<ValueId> &values, const std::vector<ValueId> &in) {
    for (ValueId value : values)
      if (contains(in, value))
        addOnce(both, value);
  };
  addThose(a, allOfB);
  addThose(b, allOfA);
  if (both.empty())
    addThose(allOfA, allOfB);
  return both;
}

Transposition::Cotangent Transposition::cotangentOf(EquationId id, Lookup lookup) const {
  Cotangent result;
  const Equation &equation = all_[id];
  if (!emits(id) || equation.outs.empty())
    return result;
  bool isSum = equation.primitive == table_.addAny;
  if (isSum) { // all operands are cotangents of one value
    bool isFirst = true;
    for (ValueId in : equation.ins) {
      const Cotangent *of = (this->*lookup)(in);
      if (!of || !of->isKnown)
        continue;
      result.of = isFirst ? of->of : common(result.of, of->of);
      isFirst = false;
    }
    if (isFirst)
      return {};
  } else if (candidates_[id].empty()) {
    return result;
  }
  std::vector<ValueId> made;
  for (Candidate candidate : candidates_[id])
    if (candidate.node != Candidate::kSum)
      for (ValueId operand : madeFor(id, candidate))
        addOnce(made, operand);
  for (ValueId value : made)
    addOnce(result.of, tangentOf(value));
  result.isKnown = true;
  return result;
}

// --- Answers -------------------------------------------------------------------------------------

/// Updates `only_` and `cotangents_` after a change of the candidates of `id`.
void Transposition::update(EquationId id, Lookup lookup) {
  const Candidates &list = candidates_[id];
  auto isFirst = [&](Candidate candidate) { return candidate.primal == list[0].primal; };
  only_[id] =
      !list.empty() && std::all_of(list.begin(), list.end(), isFirst) ? list[0].primal : kNone;
  cotangents_[id] = cotangentOf(id, lookup);
}

bool Transposition::usesResidual(EquationId id) const {
  const std::vector<ValueId> &ins = all_[id].ins;
  return std::any_of(ins.begin(), ins.end(),
                     [&](ValueId in) { return !values_[in].isLinear && !values_[in].isConstant; });
}

std::vector<PrimalId> Transposition::ownersOf(EquationId id) const {
  std::vector<PrimalId> owners;
  for (Candidate candidate : candidates_[id])
    addOnce(owners, candidate.primal);
  return owners;
}

} // namespace hlotag::derivation
