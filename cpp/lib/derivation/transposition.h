// SPDX-License-Identifier: Apache-2.0
//
// Which equation each emitted operation stems from: the transposition, replayed.
#pragma once

#include "equations.h"

#include <optional>

namespace hlotag::derivation {

using PrimalId = uint32_t;

inline uint64_t keyOf(uint32_t high, uint32_t low) { return uint64_t(high) << 32 | low; }

/// For what comes in order.
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

/// Lists of equations by value, in one array.
class EquationLists {
public:
  struct List {
    const EquationId *first = nullptr, *last = nullptr;
    const EquationId *begin() const { return first; }
    const EquationId *end() const { return last; }
  };

  /// Those that have a value among `values`.
  EquationLists(const std::vector<Equation> &equations, size_t numValues,
                std::vector<ValueId> Equation::*values)
      : starts_(numValues + 1), ends_(numValues) {
    for (const Equation &equation : equations)
      for (ValueId value : equation.*values)
        ++starts_[value + 1];
    for (size_t value = 0; value < numValues; ++value)
      starts_[value + 1] += starts_[value];
    std::copy(starts_.begin(), starts_.end() - 1, ends_.begin());
    items_.resize(starts_.back());
    for (EquationId id = 0; id < equations.size(); ++id)
      for (ValueId value : equations[id].*values)
        if (uint32_t &end = ends_[value]; end == starts_[value] || items_[end - 1] != id)
          items_[end++] = id;
  }
  List operator[](ValueId value) const {
    return {items_.data() + starts_[value], items_.data() + ends_[value]};
  }

private:
  std::vector<uint32_t> starts_, ends_; // by value
  std::vector<EquationId> items_;
};

/// An equation of the program, with all that is computed again of it.
struct Primal {
  const Row *row; ///< null if the table has none
  PlaceId place;
  TextId primitive;
  const std::vector<ValueId> &ins, &outs;
  std::vector<EquationId> originals = {}, copies = {};
};

/// An equation may be `node` of what the derivative of `primal` emits.
struct Candidate {
  static constexpr uint8_t kSum = 255; ///< it adds to a cotangent that `primal` hands on or makes
  PrimalId primal;
  uint8_t node;
  friend bool operator==(Candidate a, Candidate b) {
    return a.primal == b.primal && a.node == b.node;
  }
};

/// A candidate takes what its node takes, each operand from one that may be what the table says;
/// what it makes is used by the same emission, or is the cotangent of an operand. Candidates for
/// which that is not so are dropped until all are; an equation with one primal left stems from it,
/// unless the primal may be another one that is dead code. Dead code only has dead users, so
/// what gets its cotangent from a derivative of live code is one of live code.
class Transposition {
public:
  Transposition(Equations &equations, const Table &table);

  const Primal &primal(PrimalId id) const { return primals_[id]; }
  /// Of an equation that is no derivative.
  PrimalId primalOf(EquationId id) const { return primalOf_[id]; }
  /// Of an emitted equation or a residual; empty if none is known.
  std::vector<PrimalId> ownersOf(EquationId id) const;
  /// Whether they are all that it may stem from.
  bool isLive(EquationId id) const { return isLive_[id]; }
  /// The residual that the equation shares a place with, whose primal is dead code; or none.
  std::optional<EquationId> residualOf(EquationId id) const;
  EquationLists::List usersOf(ValueId value) const { return users_[value]; }

private:
  using Candidates = std::vector<Candidate>;
  /// The values whose cotangent it may be, and what sums hand it on to; or any.
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
  void addSumsOfMakers(EquationId id, const Cotangent &sum, Candidates &found,
                       Candidates &ifUnsure) const;
  bool addSumsHandedOn(EquationId id, const Cotangent &sum, Candidates &found) const;
  /// Whether the cotangent of one of `from` is that of `value` too.
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
  /// The primal of all candidates, if that is one.
  std::optional<PrimalId> only(EquationId id) const {
    return only_[id] == kNone ? std::nullopt : std::optional(only_[id]);
  }
  void update(EquationId id, Lookup lookup);
  bool usesResidual(EquationId id) const;
  bool usesOwn(EquationId id) const;
  bool hasCounterpart(EquationId id) const;
  bool emits(EquationId id) const { return all_[id].isDerived; }
  /// Of what an equation made that stems from live code; null if none emitted it.
  const Cotangent *cotangent(ValueId value) const;
  /// The same, or of what it may be.
  const Cotangent *hint(ValueId value) const;
  /// Of what the equation makes; `lookup` finds those of the cotangents that a sum adds.
  Cotangent cotangentOf(EquationId id, Lookup lookup = &Transposition::cotangent) const;

  bool isCotangentType(ValueId cotangent, ValueId of) const {
    return values_[cotangent].type == values_[of].type;
  }

  const std::vector<Equation> &all_;
  const std::vector<Value> &values_;
  const Table &table_;
  std::vector<Primal> primals_;
  std::vector<PrimalId> primalOf_;                      // by equation
  ir::FlatMap<uint64_t, std::vector<PrimalId>> byNode_; ///< by place and what they may emit
  mutable ir::FlatMap<uint64_t, std::vector<ValueId>> handedOn_; // by value
  ir::FlatMap<uint64_t, std::vector<PrimalId>> at_; // by place and value that it takes or makes
  EquationLists made_, users_;
  std::vector<Candidates> candidates_;     // by equation
  std::vector<PrimalId> only_;             ///< by equation: of all candidates, or none
  std::vector<Cotangent> cotangents_;      // by equation
  std::vector<PlaceId> calledAt_;          ///< by value: where an emitted call made it
  std::vector<bool> isLive_, isOfDead_;    // by equation
  std::vector<std::vector<RowNode>> dead_; ///< by equation: nodes of dead ones that it may be
  std::vector<bool> hasTangent_;           // by value
  ir::FlatMap<uint64_t, std::vector<EquationId>> emittedAt_;          // by place and primitive
  std::map<std::pair<uint64_t, uint8_t>, bool> differentiatedByDead_; // and by operand
  std::vector<bool> isDifferentiated_;    // by value: something emitted has its cotangent
  mutable std::vector<ValueId> tangents_; // by value
};

} // namespace hlotag::derivation
