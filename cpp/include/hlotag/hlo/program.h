// SPDX-License-Identifier: Apache-2.0
//
// Which operations does a program have, and which computes the operands of which? HLO instructions
// are joined to them. Holds no reference to the module it was read from.
#pragma once

#include "hlotag/hlo/module.h"
#include "hlotag/hlo/numbering.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hlotag::hlo {

/// Returns the entries with string values: XLA ignores others.
Entries textEntries(ir::Attribute attribute);

/// Returns whether `accepts` is true for the entries of an operation in `module`. Calls it once for
/// each distinct dictionary.
bool anyEntries(ir::Operation module, const std::function<bool(const Entries &)> &accepts);

struct Program {
  struct Argument {
    int64_t function = kNone;
    size_t number = 0;
  };
  struct Operation {
    size_t name, entries, dimensions; // In the tables below.
    Ids operands; // Operations that compute the operands; `kNone` for arguments of the program and
                  // of regions.
    size_t place; // Equal if the locations without their names are equal.
    size_t value; // Equal if the operations compute the same from the same operands.
    int64_t parent; // The operation that holds it in a region; `kNone` for functions.
    Ids helpers;    // Earlier operations with this number in their names.
    std::vector<Argument> arguments; // Of functions with several calls: those that are operands.
    int64_t callee = kNone;          // The function that a call calls.
  };

  Program() = default;
  Program(Program &&) = default;

  /// Reads a StableHLO module, and writes the operations' numbers into their names; see
  /// `numberNames`.
  static Program ofOperations(MlirOperation module, std::string_view token, bool every);

  /// Makes an operation of each instruction whose number in `numbers` is not `kNone`.
  static Program ofInstructions(const Module &module, const Kinds &kinds, const Ids &numbers);

  bool areAtOnePlace(const Ids &numbers) const;

  std::string token; // The token in the numbers.
  std::vector<Operation> operations;
  Ids results;

  std::vector<std::string> names; // Dialect and name, or opcodes of instructions.
  std::vector<Entries> entries;
  std::vector<Ids> dimensions; // Of first results; -1 if dynamic.
};

} // namespace hlotag::hlo
