// SPDX-License-Identifier: Apache-2.0
//
// Which nodes of which primals may an emitted equation be?
#include "transposition.h"

#include <algorithm>

namespace hlotag::derivation {
namespace {

constexpr size_t kMaxInputs = 8;     // inputs of a node whose orders are tried
constexpr size_t kMaxPlausible = 64; // primals of one place, if no value selects among them

} // namespace

/// Returns the primals at the equation's place that share a value with it; all primals of the place
/// if no value decides.
std::vector<PrimalId> Transposition::plausible(EquationId id) const {
  const Equation &equation = all_[id];
  std::vector<PrimalId> found;
  bool isOpen = true;
  auto addOwners = [&](ValueId value) {
    for (EquationId maker : made_[value])
      for (Candidate candidate : candidates_[maker])
        if (primals_[candidate.primal].place == equation.place)
          addOnce(found, candidate.primal);
  };
  for (ValueId in : equation.ins) {
    if (values_[in].isLinear || values_[in].isConstant)
      continue;
    isOpen = false;
    if (const auto *primals = at_.find(keyOf(equation.place, in)))
      for (PrimalId primal : *primals)
        addOnce(found, primal);
    addOwners(in);
  }
  if (!isOpen)
    return found;
  for (ValueId in : equation.ins) {
    const Cotangent *of = values_[in].isLinear ? hint(in) : nullptr;
    if (!of || !of->isKnown)
      continue;
    isOpen = false;
    addOwners(in);
  }
  if (!isOpen) {
    for (ValueId in : equation.ins)
      if (const Cotangent *of = values_[in].isLinear ? hint(in) : nullptr)
        addMakersAt(equation.place, *of, found);
    return found;
  }
  const auto *here = byNode_.find(keyOf(equation.place, equation.primitive));
  return here && here->size() <= kMaxPlausible ? *here : found;
}

/// Adds the primals of the place that take or make a value with the cotangent `of`.
void Transposition::addMakersAt(PlaceId place, const Cotangent &of,
                                std::vector<PrimalId> &found) const {
  for (ValueId value : of.of)
    for (ValueId other : handedOn(value))
      if (const auto *primals = at_.find(keyOf(place, other)))
        for (PrimalId primal : *primals)
          addOnce(found, primal);
}

bool Transposition::fits(ValueId value, Input input, PrimalId id) const {
  const Primal &primal = primals_[id];
  const Value &known = values_[value];
  switch (input.kind) {
  case Input::Cotangent:
    return known.isLinear ? isCotangentOf(value, primal) : known.isConstant;
  case Input::Operand:
    return input.number < primal.ins.size() && primal.ins[input.number] == value;
  case Input::Result:
    return contains(primal.outs, value);
  case Input::Emitted: {
    const Node &node = primal.row->nodes[input.number];
    if (known.isConstant && !node.isLinear)
      return std::all_of(node.inputs.begin(), node.inputs.end(),
                         [](Input from) { return from.kind == Input::Constant; });
    if (node.isLinear != known.isLinear)
      return false;
    return std::any_of(made_[value].begin(), made_[value].end(), [&](EquationId maker) {
      const Candidates &list = candidates_[maker];
      return std::find(list.begin(), list.end(), Candidate{id, input.number}) != list.end();
    });
  }
  case Input::Constant:
    break;
  }
  return false;
}

/// Returns whether each operand of the equation matches an input of its own, and each input of the
/// node matches an operand.
bool Transposition::fits(EquationId id, Candidate candidate) const {
  const Equation &equation = all_[id];
  const Primal &primal = primals_[candidate.primal];
  const Node &node = primal.row->nodes[candidate.node];
  std::vector<Input> wanted;
  for (Input input : node.inputs) {
    bool isLiteral = input.kind == Input::Constant ||
                     (input.kind == Input::Operand && input.number < primal.ins.size() &&
                      values_[primal.ins[input.number]].isConstant);
    if (!isLiteral)
      wanted.push_back(input);
  }
  std::vector<ValueId> given;
  for (ValueId in : equation.ins)
    if (!values_[in].isConstant && (equation.hasResult || !contains(given, in)))
      given.push_back(in);
  if (given.size() > wanted.size() || wanted.size() > kMaxInputs)
    return false;
  std::vector<bool> isTaken(wanted.size());
  return assign(id, candidate.primal, given, wanted, isTaken);
}

/// Returns whether the values `given` match distinct inputs of `wanted`, and each other input
/// matches an operand of the equation. Backtracks.
bool Transposition::assign(EquationId id, PrimalId primal, std::vector<ValueId> &given,
                           const std::vector<Input> &wanted, std::vector<bool> &isTaken) const {
  const Equation &equation = all_[id];
  if (given.empty()) {
    for (size_t i = 0; i < wanted.size(); ++i)
      if (!isTaken[i] && std::none_of(equation.ins.begin(), equation.ins.end(),
                                      [&](ValueId in) { return fits(in, wanted[i], primal); }))
        return false;
    return true;
  }
  ValueId value = given.back();
  given.pop_back();
  bool isDone = false;
  for (size_t i = 0; i < wanted.size() && !isDone; ++i) {
    if (isTaken[i] || !fits(value, wanted[i], primal))
      continue;
    isTaken[i] = true;
    isDone = assign(id, primal, given, wanted, isTaken);
    isTaken[i] = false;
  }
  given.push_back(value);
  return isDone;
}

void Transposition::propose(EquationId id) {
  const Equation &equation = all_[id];
  if (equation.outs.empty() || (emits(id) && equation.primitive == table_.addAny)) {
    candidates_[id] = emits(id) ? sumsOf(id) : Candidates();
    return;
  }
  bool isConstant = std::all_of(equation.ins.begin(), equation.ins.end(),
                                [&](ValueId in) { return values_[in].isConstant; });
  if (!emits(id) && isConstant)
    return;
  for (PrimalId primal : plausible(id)) {
    const Row *row = primals_[primal].row;
    if (!row || primal == primalOf_[id])
      continue;
    for (size_t node = 0; node < row->nodes.size(); ++node) {
      Candidate candidate{primal, uint8_t(node)};
      if (row->nodes[node].primitive == equation.primitive &&
          (emits(id) || !row->nodes[node].isLinear) && fits(id, candidate))
        candidates_[id].push_back(candidate);
    }
  }
}

/// Returns the candidates of an `add_any`. JAX adds a cotangent to the previous one at the equation
/// that made it, or at the equation that hands it on to several operands.
Transposition::Candidates Transposition::sumsOf(EquationId id) const {
  const Equation &equation = all_[id];
  Candidates found = sumsOfRows(id);
  if (equation.ins.size() != 2)
    return found;
  for (ValueId in : equation.ins)
    if (const Cotangent *of = cotangent(in); of && !of->isKnown)
      return found;
  if (calledAt_[equation.ins[1]] == equation.place) // a call may have made it
    return found;
  Cotangent sum = cotangentOf(id);
  addSumsOfMakers(id, sum, found);
  addSumsHandedOn(id, sum, found);
  return found;
}

/// Returns the candidates whose node is a sum.
Transposition::Candidates Transposition::sumsOfRows(EquationId id) const {
  Candidates found;
  for (ValueId in : all_[id].ins)
    for (EquationId maker : made_[in])
      for (Candidate from : candidates_[maker]) {
        if (primals_[from.primal].place != all_[id].place)
          continue;
        const Row &row = *primals_[from.primal].row;
        for (size_t node = 0; node < row.nodes.size(); ++node) {
          Candidate candidate{from.primal, uint8_t(node)};
          if (row.nodes[node].primitive == table_.addAny && fits(id, candidate))
            addOnce(found, candidate);
        }
      }
  return found;
}

/// Adds the primals that made the added cotangent.
void Transposition::addSumsOfMakers(EquationId id, const Cotangent &sum, Candidates &found) const {
  for (EquationId maker : made_[all_[id].ins[1]])
    for (Candidate from : candidates_[maker]) {
      if (!emits(maker) || from.node == Candidate::kSum ||
          primals_[from.primal].place != all_[id].place)
        continue;
      std::vector<ValueId> made = madeFor(maker, from);
      if (!sum.isKnown || std::any_of(made.begin(), made.end(),
                                      [&](ValueId value) { return isHandedOnTo(sum.of, value); }))
        addOnce(found, Candidate{from.primal, Candidate::kSum});
    }
}

/// Adds the primals that hand on the added cotangent.
void Transposition::addSumsHandedOn(EquationId id, const Cotangent &sum, Candidates &found) const {
  ValueId added = all_[id].ins[1];
  std::vector<PrimalId> here;
  if (const Cotangent *of = cotangent(added))
    addMakersAt(all_[id].place, *of, here);
  for (PrimalId candidate : here) {
    const Primal &primal = primals_[candidate];
    if (!primal.row || !isCotangentOf(added, primal))
      continue;
    for (ValueId in : handedOnBy(primal))
      if (!sum.isKnown || isHandedOnTo(sum.of, in))
        addOnce(found, Candidate{candidate, Candidate::kSum});
  }
}

/// Returns whether `id` has one primal, not that of `from`, and takes `value` as the cotangent of
/// its result, not as a value from another node of the same derivative.
bool Transposition::takesCotangent(EquationId id, ValueId value, Candidate from) const {
  std::optional<PrimalId> primal = only(id);
  if (!primal || *primal == from.primal || !values_[value].isLinear)
    return false;
  return std::all_of(candidates_[id].begin(), candidates_[id].end(), [&](Candidate candidate) {
    if (candidate.node == Candidate::kSum)
      return false;
    const std::vector<Input> &inputs = primals_[*primal].row->nodes[candidate.node].inputs;
    return std::none_of(inputs.begin(), inputs.end(), [&](Input input) {
      return input.kind == Input::Emitted && fits(value, input, *primal);
    });
  });
}

bool Transposition::isUsed(EquationId id, Candidate candidate) const {
  std::vector<ValueId> made = madeFor(id, candidate);
  for (ValueId out : all_[id].outs)
    for (EquationId user : users_[out]) {
      auto primal = only(user);
      if (!primal || !isLive_[user] || made.empty() || !takesCotangent(user, out, candidate))
        continue;
      const std::vector<ValueId> &outs = primals_[*primal].outs;
      if (std::none_of(outs.begin(), outs.end(),
                       [&](ValueId taken) { return isHandedOnTo(made, taken); }))
        return false;
    }
  if (!made.empty())
    return true;
  const Node &node = primals_[candidate.primal].row->nodes[candidate.node];
  for (ValueId out : all_[id].outs)
    for (EquationId user : users_[out])
      for (Candidate next : candidates_[user])
        if (next.primal == candidate.primal && next.node != Candidate::kSum &&
            std::find(node.users.begin(), node.users.end(), next.node) != node.users.end())
          return true;
  return false;
}

bool Transposition::prune() {
  auto isSum = [&](EquationId id) { return emits(id) && all_[id].primitive == table_.addAny; };
  std::fill(isDifferentiated_.begin(), isDifferentiated_.end(), false);
  for (EquationId id = 0; id < all_.size(); ++id) {
    if (isSum(id))
      cotangents_[id] = cotangentOf(id);
    if (emits(id))
      for (Candidate candidate : candidates_[id])
        for (ValueId out : primals_[candidate.primal].outs)
          isDifferentiated_[tangentOf(out)] = true;
  }
  bool isChanged = false;
  for (EquationId id = 0; id < all_.size(); ++id) {
    Candidates &list = candidates_[id];
    if (isSum(id)) {
      Candidates sums = sumsOf(id);
      if (sums == list)
        continue;
      list = std::move(sums);
    } else {
      auto isWrong = [&](Candidate candidate) {
        return !fits(id, candidate) || !isUsed(id, candidate);
      };
      auto kept = std::remove_if(list.begin(), list.end(), isWrong);
      if (kept == list.end())
        continue;
      list.erase(kept, list.end());
    }
    update(id, &Transposition::cotangent);
    isChanged = true;
  }
  return isChanged;
}

} // namespace hlotag::derivation
