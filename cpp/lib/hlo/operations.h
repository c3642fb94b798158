// SPDX-License-Identifier: Apache-2.0
//
// What may an operation of the program become in HLO, and which value does it move?
#pragma once

#include "hlotag/hlo/program.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace hlotag::hlo {

/// Appends numbers of operations to one list after another, each number once per list.
class Unique {
public:
  explicit Unique(size_t numOperations) : lists_(numOperations) {}
  void start() { ++list_; }
  void add(Numbers &ids, int64_t number) {
    if (std::exchange(lists_.at(size_t(number)), list_) != list_)
      ids.push_back(number);
  }

private:
  std::vector<size_t> lists_; // By operation: the last list that has it.
  size_t list_ = 0;
};

class Operations {
public:
  /// The longest chain of moves that is followed: XLA merges a move with its neighbours. The bound
  /// keeps the cost linear in long chains and in cycles of calls.
  static constexpr int kMaxMoves = 16;

  explicit Operations(const Program &program) : program_(program) {}

  size_t size() const { return program_.operations.size(); }
  const Numbers &results() const { return program_.results; }
  const Numbers &operands(int64_t number) const { return at(number).operands; }
  /// Returns the operands of an operation that XLA inlined from `calls`. An argument of a function
  /// with several calls is replaced by the operand of its call.
  Numbers operands(int64_t number, const Numbers &calls) const {
    Numbers found = operands(number);
    for (size_t i = 0; i < found.size(); ++i)
      if (found[i] == kNone)
        found[i] = findGiven(at(number).arguments, i, calls);
    return found;
  }
  const Entries &entries(int64_t number) const { return program_.entries[at(number).entries]; }
  const Numbers &dimensions(int64_t number) const { return at(number).dimensions; }
  uint64_t numElements(int64_t number) const { return hlo::numElements(dimensions(number)); }
  const Kind &kind(int64_t number) const { return program_.kinds[at(number).kind]; }
  /// Returns whether an operation runs others: a call, a loop, a `shard_map`.
  bool runsOthers(int64_t number) const { return kind(number).is(kRunsOthers); }
  bool relabels(int64_t number) const { return kind(number).is(kRelabels); }

  /// Returns whether XLA makes such instructions from an operation, other than by moving.
  bool becomes(int64_t number, const Kind &made) const {
    return mayBe(kind(number), made) &&
           !(made.isHeavy() && made.heavy != kind(number).heavy && reducesNothing(number)) &&
           !(made.is(kReshapes) && relabels(number) && changesSize(number));
  }

  /// Returns the operations among `numbers` that become `made`.
  Numbers select(const Numbers &numbers, const Kind &made) const {
    Numbers found;
    for (int64_t number : numbers)
      if (becomes(number, made))
        found.push_back(number);
    return found;
  }

  const Numbers &helpers(int64_t number) const { return at(number).helpers; }

  /// Returns the operations that relabel the value's dimensions, within `kMaxMoves` moves.
  const Numbers &relabellings(int64_t number) {
    if (relabellings_.empty()) {
      relabellings_.resize(size());
      for (int64_t user = 0; user < int64_t(size()); ++user) {
        int64_t at = user;
        for (int step = 0; step < kMaxMoves && relabels(user) && moves(at) && hasKnownOperand(at);
             ++step)
          relabellings_.at(size_t(at = operands(at)[0])).push_back(user);
      }
    }
    return relabellings_.at(size_t(number));
  }

  /// Returns the operation that becomes `made`: this one, or the one whose result it moves, in
  /// `kMaxMoves` moves at most. `kNone` if there is none.
  int64_t findSource(int64_t number, const Kind &made) const {
    for (int step = 0; step <= kMaxMoves; ++step) {
      if (number == kNone || becomes(number, made))
        return number;
      if (!moves(number) && !reducesNothing(number))
        return kNone;
      const Numbers &operands = this->operands(number);
      number = operands.empty() ? kNone : operands[0];
    }
    return kNone;
  }

private:
  const Program::Operation &at(int64_t number) const {
    return program_.operations.at(size_t(number));
  }

  /// Returns the operation that computes the argument at a position of `arguments`.
  int64_t findGiven(const std::vector<Program::Argument> &arguments, size_t position,
                    const Numbers &calls) const {
    const std::vector<Program::Argument> *of = &arguments;
    for (size_t hop = 0; hop <= calls.size() && position < of->size(); ++hop) {
      auto [function, number] = (*of)[position];
      auto call = std::find_if(calls.begin(), calls.end(), [&, callee = function](int64_t call) {
        return callee != kNone && at(call).callee == callee;
      });
      if (call == calls.end() || number >= operands(*call).size())
        break;
      if (int64_t made = operands(*call)[number]; made != kNone)
        return made;
      of = &at(*call).arguments;
      position = number;
    }
    return kNone;
  }

  bool moves(int64_t number) const { return kind(number).is(kMoves); }

  /// Returns whether an operation is a sum over dimensions of size 1, the gradient of a broadcast.
  bool reducesNothing(int64_t number) const {
    return kind(number).heavy == Heavy::Reduce && hasKnownOperand(number) && !changesSize(number);
  }

  bool hasKnownOperand(int64_t number) const {
    return !operands(number).empty() && operands(number)[0] != kNone;
  }

  /// Returns whether an operation is known to have more elements than its operand, or fewer.
  bool changesSize(int64_t number) const {
    return hasKnownOperand(number) && numElements(operands(number)[0]) != numElements(number);
  }

  const Program &program_;
  std::vector<Numbers> relabellings_;
};

} // namespace hlotag::hlo
