// SPDX-License-Identifier: Apache-2.0
//
// May an emitted equation stem from dead code, an equation that is missing in the module?
#include "transposition.h"

#include <algorithm>

namespace hlotag::derivation {

// --- Derivatives of live code --------------------------------------------------------------------

/// Returns whether each candidate takes the result or a residual of its primal. The module holds
/// neither for dead code. An operand proves nothing: a live equation may take it too.
bool Transposition::usesOwn(EquationId id) const {
  const Candidates &list = candidates_[id];
  return usesResidual(id) && !list.empty() &&
         std::all_of(list.begin(), list.end(), [&](Candidate candidate) {
           if (candidate.node == Candidate::kSum)
             return false;
           const Row &row = *primals_[candidate.primal].row;
           const std::vector<Input> &inputs = row.nodes[candidate.node].inputs;
           return std::any_of(inputs.begin(), inputs.end(), [&](Input input) {
             return input.kind == Input::Result ||
                    (input.kind == Input::Emitted && !row.nodes[input.number].isLinear);
           });
         });
}

/// Returns whether another equation takes the same cotangent and another operand of the same
/// primal, as the two derivatives of a product do.
bool Transposition::hasCounterpart(EquationId id) const {
  std::optional<PrimalId> primal = only(id);
  if (!primal || !usesResidual(id))
    return false;
  const std::vector<ValueId> &ins = all_[id].ins;
  auto isOther = [&](ValueId in) {
    return !values_[in].isLinear && !values_[in].isConstant && !contains(ins, in);
  };
  for (ValueId in : ins)
    for (EquationId user : users_[in])
      if (values_[in].isLinear && only(user) == primal &&
          std::any_of(all_[user].ins.begin(), all_[user].ins.end(), isOther))
        return true;
  return false;
}

/// Returns whether the derivative of `from` may make the cotangent of a result of `to`.
bool Transposition::isHandedTo(PrimalId from, PrimalId to) const {
  const std::vector<ValueId> &outs = primals_[to].outs;
  return std::any_of(outs.begin(), outs.end(),
                     [&](ValueId out) { return isHandedOnTo(primals_[from].ins, out); });
}

void Transposition::findLive() {
  std::fill(isLive_.begin(), isLive_.end(), false);
  std::vector<EquationId> pending;
  auto setLive = [&](EquationId id) {
    if (isLive_[id] || !emits(id))
      return;
    isLive_[id] = true;
    pending.push_back(id);
  };
  for (EquationId id = 0; id < all_.size(); ++id)
    if (usesOwn(id) || hasCounterpart(id))
      setLive(id);
  while (!pending.empty()) {
    EquationId id = pending.back();
    pending.pop_back();
    for (ValueId out : all_[id].outs)
      if (values_[out].isLinear)
        for (EquationId user : users_[out])
          setLive(user);
    // Emitted equations of the same primal that take the same cotangent.
    std::optional<PrimalId> same = only(id);
    for (ValueId in : all_[id].ins)
      for (EquationId user : users_[in])
        if (same && values_[in].isLinear && only(user) == same)
          setLive(user);
    // The maker of its cotangent, if that stems from the same primal or from a user of its result.
    std::optional<PrimalId> here = only(id);
    for (size_t i = 0; here && i < all_[id].ins.size(); ++i)
      for (EquationId maker : made_[all_[id].ins[i]]) {
        std::optional<PrimalId> user = only(maker);
        if (user && (user == here || isHandedTo(*user, *here)))
          setLive(maker);
      }
  }
}

// --- Derivatives of dead code --------------------------------------------------------------------

namespace {

bool makesCotangentOf(const Node &node, uint8_t operand) {
  return std::find(node.operands.begin(), node.operands.end(), operand) != node.operands.end();
}

} // namespace

/// Marks the values with a tangent: results of differentiated primals, and of primals that take a
/// value with a tangent.
void Transposition::findTangents() {
  hasTangent_.assign(values_.size(), false);
  for (EquationId id = 0; id < all_.size(); ++id)
    if (std::optional<PrimalId> owner = emits(id) && isLive_[id] ? only(id) : std::nullopt)
      for (ValueId out : primals_[*owner].outs)
        hasTangent_[out] = true;
  for (const Primal &primal : primals_)
    if (primal.row && std::any_of(primal.ins.begin(), primal.ins.end(),
                                  [&](ValueId in) { return hasTangent_[in]; }))
      for (ValueId out : primal.outs)
        hasTangent_[out] = true;
}

/// Returns whether some emitted equation of the place may be `node`, judged by its primitive and by
/// the makers of its operands.
bool Transposition::isEmittedAt(PlaceId place, const Row &row, const Node &node) const {
  if (!node.primitive)
    return true;
  const std::vector<EquationId> *emitted = emittedAt_.find(keyOf(place, node.primitive));
  if (!emitted)
    return false;
  auto takes = [&](EquationId id, Input input) {
    if (input.kind != Input::Emitted || !row.nodes[input.number].isLinear)
      return true;
    TextId primitive = row.nodes[input.number].primitive;
    return std::any_of(all_[id].ins.begin(), all_[id].ins.end(), [&](ValueId in) {
      return std::any_of(made_[in].begin(), made_[in].end(), [&](EquationId maker) {
        return all_[maker].place == place && all_[maker].primitive == primitive;
      });
    });
  };
  return std::any_of(emitted->begin(), emitted->end(), [&](EquationId id) {
    return std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](Input input) { return takes(id, input); });
  });
}

/// Returns whether a dead equation that emits `id` as `node` can have a tangent at `operand`: only
/// if some equation of the place makes the operand's cotangent.
bool Transposition::isDifferentiatedByDead(EquationId id, RowNode node, uint8_t operand) {
  const Row &row = *table_.row(node.primitive);
  if (makesCotangentOf(row.nodes[node.node], operand))
    return true;
  uint64_t key = keyOf(all_[id].place, node.primitive);
  auto [known, isNew] = differentiatedByDead_.try_emplace({key, operand}, false);
  if (isNew)
    known->second = std::any_of(row.nodes.begin(), row.nodes.end(), [&](const Node &other) {
      return makesCotangentOf(other, operand) && isEmittedAt(all_[id].place, row, other);
    });
  return known->second;
}

/// Returns whether a dead equation's `node` may take the residual `value` as `input`.
bool Transposition::isInputOfDead(EquationId id, RowNode node, ValueId value, Input input) {
  const Row &row = *table_.row(node.primitive);
  const std::vector<EquationId> &makers = made_[value];
  switch (input.kind) {
  case Input::Operand:
    return !hasTangent_[value] || isDifferentiatedByDead(id, node, input.number);
  case Input::Emitted:
    return std::any_of(makers.begin(), makers.end(), [&](EquationId maker) {
      return all_[maker].primitive == row.nodes[input.number].primitive;
    });
  default: // the module has no result of dead code
    return false;
  }
}

/// Returns whether a dead equation's node `of` may take all residuals that `id` takes.
bool Transposition::fitsDead(EquationId id, RowNode of) {
  const std::vector<Input> &inputs = table_.row(of.primitive)->nodes[of.node].inputs;
  return std::all_of(all_[id].ins.begin(), all_[id].ins.end(), [&](ValueId in) {
    return values_[in].isLinear || values_[in].isConstant ||
           std::any_of(inputs.begin(), inputs.end(),
                       [&](Input input) { return isInputOfDead(id, of, in, input); });
  });
}

/// Finds the places with a primitive that has no row. Its derivative may emit any equation of the
/// place that takes no residual. Primitives that compute residuals only need no row.
void Transposition::findUnknownPlaces() {
  ir::FlatMap<uint64_t, bool> unknown;
  auto isVariable = [&](ValueId value) {
    return values_[value].isFloat && !values_[value].isConstant;
  };
  for (const Equation &equation : all_)
    if (!equation.isDerived && !table_.row(equation.primitive) &&
        table_.nodesOf(equation.primitive).empty() &&
        std::any_of(equation.ins.begin(), equation.ins.end(), isVariable) &&
        std::any_of(equation.outs.begin(), equation.outs.end(), isVariable))
      unknown.insert(equation.place);
  for (EquationId id = 0; id < all_.size(); ++id) {
    if (!emits(id))
      continue;
    isOfDead_[id] = unknown.find(all_[id].place) && !usesResidual(id);
    emittedAt_.insert(keyOf(all_[id].place, all_[id].primitive)).first->push_back(id);
  }
}

/// Collects in `dead_` the nodes of dead equations that each emitted equation may be: all fitting
/// nodes for an equation without candidates, and then the users of such nodes. Returns whether more
/// equations than before may stem from dead code.
bool Transposition::findDead() {
  findTangents();
  differentiatedByDead_.clear();
  dead_.assign(all_.size(), {});
  bool isMore = false;
  for (EquationId id = 0; id < all_.size(); ++id) {
    if (!emits(id))
      continue;
    for (ValueId in : all_[id].ins)
      for (EquationId maker : made_[in])
        if (all_[maker].place == all_[id].place)
          for (RowNode from : dead_[maker])
            addUsersOf(from, id);
    bool isNew = !dead_[id].empty() && !candidates_[id].empty();
    isOfDead_[id] = isOfDead_[id] || isNew;
    isMore |= isNew;
    if (candidates_[id].empty())
      for (RowNode node : table_.nodesOf(all_[id].primitive))
        if (takesCotangent(node) && fitsDead(id, node))
          addOnce(dead_[id], node);
  }
  return isMore;
}

bool Transposition::takesCotangent(RowNode of) const {
  const std::vector<Input> &inputs = table_.row(of.primitive)->nodes[of.node].inputs;
  return std::any_of(inputs.begin(), inputs.end(),
                     [](Input input) { return input.kind == Input::Cotangent; });
}

/// Adds the nodes that `id` may be if `from` makes one of its operands.
void Transposition::addUsersOf(RowNode from, EquationId id) {
  const Row &row = *table_.row(from.primitive);
  for (uint8_t user : row.nodes[from.node].users) {
    RowNode node{from.primitive, user};
    if (row.nodes[user].primitive == all_[id].primitive && fitsDead(id, node))
      addOnce(dead_[id], node);
  }
}

/// Dead code may leave a residual in the module. The only residual that `id` takes has the same
/// primal as `id` if it is computed at the same place, its own result has no derivative, and its
/// operand is the value whose cotangent `id` makes.
std::optional<EquationId> Transposition::residualOf(EquationId id) const {
  if (!candidates_[id].empty() || !emits(id))
    return std::nullopt;
  std::vector<ValueId> residuals;
  for (ValueId in : all_[id].ins)
    if (!values_[in].isLinear && !values_[in].isConstant)
      addOnce(residuals, in);
  if (residuals.size() != 1)
    return std::nullopt;
  const std::vector<EquationId> &users = users_[residuals[0]];
  if (!std::all_of(users.begin(), users.end(), [&](EquationId user) { return emits(user); }))
    return std::nullopt;
  std::optional<EquationId> found;
  for (EquationId maker : made_[residuals[0]])
    if (!emits(maker) && all_[maker].place == all_[id].place) {
      if (found && primalOf_[*found] != primalOf_[maker])
        return std::nullopt;
      found = found && !all_[*found].isCopy ? found : maker;
    }
  if (!found)
    return std::nullopt;
  const Primal &primal = primals_[primalOf_[*found]];
  bool isFed = false;
  for (ValueId out : all_[id].outs)
    for (EquationId user : users_[out]) {
      std::optional<PrimalId> next = only(user);
      isFed |= isLive_[user] && next && intersect(primals_[*next].outs, primal.ins);
    }
  if (!isFed || isDifferentiated_[tangentOf(primal.outs[0])])
    return std::nullopt;
  return found;
}

} // namespace hlotag::derivation
