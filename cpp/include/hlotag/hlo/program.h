// SPDX-License-Identifier: Apache-2.0
//
// Which operations does a program have, and which of them compute the operands of which?
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

/// The operations that HLO instructions are joined to. Holds no reference to the module.
struct Program {
  struct Argument {
    int64_t function = kNone;
    size_t number = 0;
  };
  struct Operation {
    size_t kind, entries; ///< indices in the tables below
    Numbers dimensions;   ///< of the first result; -1 if dynamic
    Numbers operands;     ///< operations that compute the operands; `kNone` for arguments of the
                          ///< program and of regions
    Numbers helpers;      ///< earlier operations with this number in their names
    size_t place;         ///< equal if the locations are equal apart from their names
    size_t value;         ///< equal if the operations compute the same from the same operands
    std::vector<Argument> arguments; ///< by operand: the function's argument that it is, if any
    int64_t callee = kNone;          ///< the function that a call calls
  };

  Program() = default;
  Program(Program &&) = default;

  /// Reads a StableHLO module, and writes the operations' numbers into their names; see
  /// `numberNames`.
  static Program ofOperations(MlirOperation module, std::string_view token, bool every);

  /// Makes an operation of each instruction whose number in `numbers` is not `kNone`.
  static Program ofInstructions(const Module &module, const Numbers &numbers);

  bool areAtOnePlace(const Numbers &numbers) const;

  std::string token; ///< the token in the numbers
  std::vector<Operation> operations;
  Numbers results;

  std::vector<Kind> kinds; ///< by name with dialect, or by opcode of instructions
  std::vector<Entries> entries;
};

} // namespace hlotag::hlo
