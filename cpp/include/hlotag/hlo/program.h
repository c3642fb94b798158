// SPDX-License-Identifier: Apache-2.0
//
// The operations of a program, by number, with who computes what: what HLO instructions are joined
// to. Nothing in it refers to what it was read from.
#pragma once

#include "hlotag/analysis/numbering.h"
#include "hlotag/hlo/module.h"

#include <string>
#include <string_view>
#include <vector>

namespace hlotag::hlo {

/// The entries in an operation's attribute: those of XLA's text form, which are all that XLA takes.
Entries textEntries(ir::Attribute attribute);

struct Program {
  struct Operation {
    size_t name, entries, dimensions; // In the tables below.
    Ids operands; // The operations that compute them; `kNone` for arguments of the program and of
                  // region operations.
    size_t place; // Equal where locations beneath their names are equal.
    size_t value; // Equal where operations compute the same from the same.
    Ids helpers;  // Those before it that have its number in their names.
  };

  Program() = default;
  Program(Program &&) = default;

  /// Numbers the names of a StableHLO module's operations, and reads it.
  static Program ofOperations(MlirOperation module, std::string_view token, bool every);

  /// Takes instructions for operations: `numbers` has those of all, `kNone` where one is none.
  static Program ofInstructions(const Module &module, const Kinds &kinds, const Ids &numbers);

  bool areAtOnePlace(const Ids &numbers) const;

  std::string token; // In the numbers.
  std::vector<Operation> operations;
  Ids results;

  std::vector<std::string> names; // With dialects; of instructions, opcodes.
  std::vector<Entries> entries;
  std::vector<Ids> dimensions; // Of first results; -1 where one is dynamic.
};

} // namespace hlotag::hlo
