// SPDX-License-Identifier: Apache-2.0
//
// Which equation does each emitted operation stem from? Replays the transposition.
#pragma once

#include "equations.h"

#include <optional>

namespace hlotag::derivation {

using PrimalId = uint32_t;

inline uint64_t keyOf(uint32_t high, uint32_t low) { return uint64_t(high) << 32 | low; }

/// Appends `value` unless it is the last element; for values that arrive sorted.
template <class T> void addLast(std::vector<T> &list, T value) {
  if (list.empty() || list.back() != value)
    list.push_back(value);
}

template <class T> void addOnce(std::vector<T> &list, T value) {
  if (std::find(list.begin(), list.end(), value) == list.end())
    list.push_back(value);
}

inline bool intersect(const std::vector<ValueId> &a, const std::vector<ValueId> &b) {
  return std::any_of(a.begin(), a.end(), [&](ValueId value) { return contains(b, value); });
}

/// By value: equations, in order and once each.
using EquationLists = std::vector<std::vector<EquationId>>;

/// Lists each equation under every value in its member `values` (`ins` or `outs`).
inline EquationLists listBy(const std::vector<Equation> &equations, size_t numValues,
                            std::vector<ValueId> Equation::*values) {
  EquationLists lists(numValues);
  for (EquationId id = 0; id < equations.size(); ++id)
    for (ValueId value : equations[id].*values)
      addLast(lists[value], id);
  return lists;
}

/// An equation of the program. Equal equations, and copies that are computed again, share one.
struct Primal {
  const Row *row; ///< null if the table has no row
  PlaceId place;
  TextId primitive;
  const std::vector<ValueId> &ins, &outs;
  std::vector<EquationId> originals = {}; ///< equations that are no copies
};

/// A possible origin of an emitted equation: `node` of the derivative of `primal`.
struct Candidate {
  static constexpr uint8_t kSum = 255; ///< adds cotangents that `primal` makes or hands on
  PrimalId primal;
  uint8_t node;
  friend bool operator==(Candidate a, Candidate b) {
    return a.primal == b.primal && a.node == b.node;
  }
};

/// Finds the candidates of each emitted equation and drops inconsistent ones until none is left. A
/// candidate is consistent if the equation takes the inputs of the candidate's node, and if its
/// result is an input of other nodes of the same derivative or the cotangent of an operand. An
/// equation whose candidates have one primal stems from that primal, unless an equation that is
/// dead code may have emitted it.
///
/// All users of dead code are dead. So an equation whose cotangent comes from the derivative of
/// live code stems from live code.
class Transposition {
public:
  Transposition(Equations &equations, const Table &table);

  const Primal &primal(PrimalId id) const { return primals_[id]; }
  /// The primal of an equation that no transpose emitted.
  PrimalId primalOf(EquationId id) const { return primalOf_[id]; }
  /// The possible primals of an emitted equation or a residual; empty if none is known.
  std::vector<PrimalId> ownersOf(EquationId id) const;
  /// Whether `id` is proved to stem from live code, so that `ownersOf` is complete.
  bool isLive(EquationId id) const { return isLive_[id]; }
  /// The residual that `id` takes from its place, if their common primal is dead code; else none.
  std::optional<EquationId> residualOf(EquationId id) const;
  const std::vector<EquationId> &usersOf(ValueId value) const { return users_[value]; }

private:
  using Candidates = std::vector<Candidate>;
  /// The values whose cotangent a value may be; any value unless `isKnown`.
  struct Cotangent {
    bool isKnown = false;
    std::vector<ValueId> of;
  };

  using Lookup = const Cotangent *(Transposition::*)(ValueId) const;

  void findPrimals();
  PrimalId knownPrimal(const Equation &equation) const;
  PrimalId addPrimal(const Equation &equation);
  void propose(EquationId id);
  std::vector<PrimalId> plausible(EquationId id) const;
  void addMakersAt(PlaceId place, const Cotangent &of, std::vector<PrimalId> &found) const;
  bool fits(EquationId id, Candidate candidate) const;
  bool fits(ValueId value, Input input, PrimalId primal) const;
  bool isUsed(EquationId id, Candidate candidate) const;
  bool takesCotangent(EquationId id, ValueId value, Candidate from) const;
  bool isHandedTo(PrimalId from, PrimalId to) const;
  bool isCotangentOf(ValueId value, const Primal &primal) const;
  std::vector<ValueId> madeFor(EquationId id, Candidate candidate) const;
  bool assign(EquationId id, PrimalId primal, std::vector<ValueId> &given,
              const std::vector<Input> &wanted, std::vector<bool> &isTaken) const;
  Candidates sumsOf(EquationId id) const;
  Candidates sumsOfRows(EquationId id) const;
  void addSumsOfMakers(EquationId id, const Cotangent &sum, Candidates &found) const;
  void addSumsHandedOn(EquationId id, const Cotangent &sum, Candidates &found) const;
  /// Whether `value` gets the cotangent of one of `from` unchanged.
  bool isHandedOnTo(const std::vector<ValueId> &from, ValueId value) const;
  std::vector<ValueId> common(const std::vector<ValueId> &a, const std::vector<ValueId> &b) const;
  void closeOver(std::vector<ValueId> &values) const;
  const std::vector<ValueId> &handedOn(ValueId value) const;
  std::vector<ValueId> handedOnBy(const Primal &primal) const;
  ValueId tangentOf(ValueId value) const;
  bool handsOnToSeveral(const Primal &primal) const;
  bool prune();
  void findLive();
  void findTangents();
  void replay();
  void findUnknownPlaces();
  bool findDead();
  bool isEmittedAt(PlaceId place, const Row &row, const Node &node) const;
  bool isDifferentiatedByDead(EquationId id, RowNode node, uint8_t operand);
  bool isInputOfDead(EquationId id, RowNode node, ValueId value, Input input);
  bool fitsDead(EquationId id, RowNode node);
  bool takesCotangent(RowNode node) const;
  void addUsersOf(RowNode from, EquationId id);
  /// The primal of all candidates; none if they have several or there are none.
  std::optional<PrimalId> only(EquationId id) const {
    return only_[id] == kNone ? std::nullopt : std::optional(only_[id]);
  }
  void update(EquationId id, Lookup lookup);
  bool usesResidual(EquationId id) const;
  bool usesOwn(EquationId id) const;
  bool hasCounterpart(EquationId id) const;
  bool emits(EquationId id) const { return all_[id].isDerived; }
  /// The values that `value` is a cotangent of; unknown unless its maker stems from live code; null
  /// if no emitted equation made it.
  const Cotangent *cotangent(ValueId value) const;
  /// As `cotangent`, whether or not the maker stems from live code.
  const Cotangent *hint(ValueId value) const;
  /// The values that the result of `id` is a cotangent of. `lookup` is for the operands of a sum.
  Cotangent cotangentOf(EquationId id, Lookup lookup = &Transposition::cotangent) const;

  bool isCotangentType(ValueId cotangent, ValueId of) const {
    return values_[cotangent].type == values_[of].type;
  }

  const std::vector<Equation> &all_;
  const std::vector<Value> &values_;
  const Table &table_;
  std::vector<Primal> primals_;
  std::vector<PrimalId> primalOf_;                      // by equation
  ir::FlatMap<uint64_t, std::vector<PrimalId>> byNode_; ///< by place and primitive of a node
  mutable ir::FlatMap<uint64_t, std::vector<ValueId>> handedOn_; // by value
  ir::FlatMap<uint64_t, std::vector<PrimalId>> at_;              // by place and operand or result
  EquationLists made_, users_;
  std::vector<Candidates> candidates_;     // by equation
  std::vector<PrimalId> only_;             ///< by equation: `only`, or kNone
  std::vector<Cotangent> cotangents_;      // by equation
  std::vector<PlaceId> calledAt_;          ///< by value: where an emitted call made it
  std::vector<bool> isLive_, isOfDead_;    // by equation
  std::vector<std::vector<RowNode>> dead_; ///< by equation: nodes of dead equations that it may be
  std::vector<bool> hasTangent_;           // by value
  ir::FlatMap<uint64_t, std::vector<EquationId>> emittedAt_;          // by place and primitive
  std::map<std::pair<uint64_t, uint8_t>, bool> differentiatedByDead_; // and by operand
  std::vector<bool> isDifferentiated_;    // by value: an emitted equation may stem from its maker
  mutable std::vector<ValueId> tangents_; // by value
};

} // namespace hlotag::derivation
