// SPDX-License-Identifier: Apache-2.0
//
// What is known of each instruction while it is joined to operations, and which operation's value
// do its users expect?
#pragma once

#include "hlotag/hlo/program.h"
#include "operations.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace hlotag::hlo {

struct Fact {
  Numbers ids;           ///< the operations that the instruction comes from, as far as known
  bool isUnsure = false; ///< its name is missing or may be a neighbour's; then the rest is set
  bool isHelper = false; ///< computes an intermediate value of `owners`
  Numbers wanted;        ///< operations whose values its users expect
  Numbers swapped;       ///< as `wanted`, if XLA swapped the operands of its users
  Numbers owners;        ///< the operations of its users
};

class Facts {
public:
  Facts(const Module &module, const Program &program, const std::vector<NumberedName> &names)
      : module(module), names(names), operations(program), unique(program.operations.size()),
        order(module.usersFirst()), facts_(module.instructions.size()) {}

  Fact &operator[](size_t i) { return facts_[i]; }
  const Fact &operator[](size_t i) const { return facts_[i]; }

  const Kind &kind(size_t i) const { return module.kind(i); }
  uint64_t size(size_t i) const { return numElements(module.dimensions(i)); }

  const Module &module;
  const std::vector<NumberedName> &names;
  Operations operations;
  Unique unique;
  const std::vector<size_t> order; // Users before operands.

private:
  std::vector<Fact> facts_; // By instruction.
};

inline void addOnce(Numbers &ids, int64_t number) {
  if (std::find(ids.begin(), ids.end(), number) == ids.end())
    ids.push_back(number);
}

class Uses {
public:
  using Use = std::pair<size_t, size_t>; // the user and the operand's position

  explicit Uses(Facts &facts)
      : facts_(facts), uses_(facts.module.instructions.size()),
        results_(facts.module.instructions.size()) {}

  /// Finds the uses of unsure instructions.
  void find() {
    findUsers();
    findResults();
  }

  const std::vector<Use> &of(size_t i) const { return uses_[i]; }
  /// The operations whose values the program returns and `i` computes.
  const Numbers &results(size_t i) const { return results_[i]; }

  /// Sets `wanted`, `swapped` and `owners` of an instruction whose users were followed before.
  void follow(size_t i) {
    Fact &fact = facts_[i];
    appendWanted(i, uses_[i], fact.wanted, fact.swapped);
    findOwners(i);
  }

  /// Appends the operations whose values `uses` of `i` expect, and those in `results(i)`.
  void appendWanted(size_t i, const std::vector<Use> &uses, Numbers &wanted, Numbers &swapped) {
    facts_.unique.start();
    for (int64_t number : results_[i])
      facts_.unique.add(wanted, number);
    for (auto [user, position] : uses)
      want(wanted, user, position);
    facts_.unique.start();
    for (auto [user, position] : uses)
      wantOther(swapped, user, position);
  }

  /// Returns true if an instruction computes the result of its operation. Unsure slices do not:
  /// they may take a part of a value that XLA combined or scattered.
  bool isKnown(size_t i) {
    const Fact &fact = facts_[i];
    return !fact.ids.empty() && !fact.isHelper && !(fact.isUnsure && facts_.kind(i).is(kSlices)) &&
           facts_.operations.becomes(fact.ids[0], facts_.kind(i));
  }

private:
  void findUsers() {
    for (size_t user : facts_.order) {
      if (facts_.kind(user).is(kWraps))
        continue;
      const std::vector<size_t> &operands = facts_.module.instructions[user].operands;
      for (size_t position = 0; position < operands.size(); ++position) {
        size_t source = facts_.module.findSource(operands[position]);
        if (facts_[source].isUnsure)
          uses_[source].emplace_back(user, position);
      }
    }
  }

  void findResults() {
    const Numbers &results = facts_.operations.results();
    std::vector<size_t> values = facts_.module.results();
    if (values.size() == 1 && facts_.kind(values[0]).is(kCombines)) // It computes all results.
      values.resize(results.size(), values[0]);
    for (size_t i = 0; results.size() == values.size() && i < values.size(); ++i)
      if (results[i] != kNone)
        results_[values[i]].push_back(results[i]);
  }

  /// Adds the operations whose value a user expects as its operand.
  void want(Numbers &wanted, size_t user, size_t position) {
    if (!isKnown(user)) {
      if (handsOn(user, position))
        handOn(wanted, user);
      return;
    }
    const Numbers &ids = facts_[user].ids;
    if (facts_.kind(user).is(kCombines) && ids.size() > 1) // It takes the operands of all.
      return;
    for (int64_t number : facts_.operations.select(ids, facts_.kind(user))) {
      // Rewriting changes operands: a contraction becomes a product and the reduction of that, a
      // division becomes a shift by another constant.
      if (isRewritten(user, number))
        continue;
      Numbers operands = facts_.operations.operands(number, facts_.names[user].callers);
      if (operands.size() != facts_.module.instructions[user].operands.size())
        continue;
      if (facts_.kind(user).heavy == Heavy::Contraction && areSwapped(user, operands))
        std::swap(operands[0], operands[1]);
      if (operands[position] != kNone)
        facts_.unique.add(wanted, operands[position]);
    }
  }

  /// As `want`, if XLA swapped the user's operands.
  void wantOther(Numbers &swapped, size_t user, size_t position) {
    if (facts_.kind(user).is(kCommutes) && facts_.module.instructions[user].operands.size() == 2)
      want(swapped, user, 1 - position);
    else if (!isKnown(user) && handsOn(user, position))
      for (int64_t number : facts_[user].swapped)
        facts_.unique.add(swapped, number);
  }

  /// Adds the operations whose value the users of a move expect, and its own.
  void handOn(Numbers &wanted, size_t user) {
    const Fact &fact = facts_[user];
    for (int64_t number : fact.wanted)
      facts_.unique.add(wanted, number);
    if (fact.isHelper)
      return;
    for (int64_t number : fact.ids)
      facts_.unique.add(wanted, number);
  }

  /// Returns true if an instruction passes on the operand, or a part of it.
  bool handsOn(size_t i, size_t position) const {
    return position == 0 && (facts_.kind(i).is(kMoves) || facts_.kind(i).is(kSlices));
  }

  /// Returns true if an instruction may have other operands than its operation.
  bool isRewritten(size_t i, int64_t number) const {
    const Kind &kind = facts_.kind(i), &own = facts_.operations.kind(number);
    if (kind.is(kMoves) || isSame(own, kind))
      return false;
    // A convolution may be a product, and a collective's start has the operands of the collective.
    bool isSame = kind.heavy == Heavy::Contraction || kind.is(kCombines);
    return !isSame || kind.heavy != own.heavy;
  }

  /// Returns true if sizes show that XLA swapped the operands of a contraction.
  bool areSwapped(size_t i, const Numbers &operands) const {
    uint64_t first = facts_.size(facts_.module.instructions[i].operands[0]);
    auto isFirst = [&](int64_t number) {
      return number != kNone && facts_.operations.numElements(number) == first;
    };
    return operands.size() == 2 && !isFirst(operands[0]) && isFirst(operands[1]);
  }

  void findOwners(size_t i) {
    // A tuple, such as the state of a loop, has many owners. Other users decide if there are any.
    auto isTuple = [&](const Use &use) { return facts_.kind(use.first).is(kTuple); };
    bool hasOnlyTuples = std::all_of(uses_[i].begin(), uses_[i].end(), isTuple);
    Numbers &owners = facts_[i].owners;
    facts_.unique.start();
    for (const Use &use : uses_[i]) {
      const Fact &of = facts_[use.first];
      if (hasOnlyTuples || !isTuple(use))
        for (int64_t number :
             of.ids.empty() && facts_.kind(use.first).is(kXlasOwn) ? of.owners : of.ids)
          facts_.unique.add(owners, number);
    }
    std::sort(owners.begin(), owners.end());
  }

  Facts &facts_;
  std::vector<std::vector<Use>> uses_;
  std::vector<Numbers> results_; // By instruction: the operations whose results it computes.
};

} // namespace hlotag::hlo
