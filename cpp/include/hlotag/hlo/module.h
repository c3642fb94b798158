// SPDX-License-Identifier: Apache-2.0
//
// Which instructions does an HLO module have, and which of them compute the operands of which?
#pragma once

#include "hlotag/hlo/opcodes.h"
#include "hlotag/hlo/wire.h"
#include "hlotag/ir/flat_map.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hlotag::hlo {

/// Numbers of operations, or ids in a module; `kNone` if missing.
using Numbers = std::vector<int64_t>;
inline constexpr int64_t kNone = -1;

/// Frontend attributes.
using Entries = std::map<std::string, std::string>;

/// Throws ModuleError if an instruction has fewer operands or callees.
inline size_t elementAt(const std::vector<size_t> &elements, size_t index) {
  if (index >= elements.size())
    throw wire::ModuleError("an instruction has too few operands or callees");
  return elements[index];
}

/// Returns the dimensions of a `ShapeProto`; empty for a tuple.
Numbers dimensionsOf(std::string_view shape);

/// The product of dimensions.
inline uint64_t numElements(const Numbers &dimensions) {
  uint64_t number = 1;
  for (int64_t size : dimensions)
    number *= uint64_t(size);
  return number;
}

class Module {
public:
  struct Instruction {
    std::string_view name, opName;
    std::string_view message, shape, attributes, metadata; // Messages, the first of it all.
    int64_t id = 0;                                        // Unique in its computation.
    size_t opcode = 0;                                     // Equal for equal opcodes.
    size_t computation = 0;
    std::vector<size_t> operands, called;
    size_t index = 0;    // Of a parameter or a tuple element.
    int64_t channel = 0; // Of a collective; 0 for none.
  };
  struct Computation {
    std::string_view name, thread;
    int64_t id;
    size_t begin, end, root;
    std::optional<size_t> caller; // The fusion, call or loop, if it is the only caller.
  };

  /// Reads an `HloModuleProto`, and keeps views of `data`. Throws `ModuleError` if the bytes
  /// end too early or an instruction refers to an id that is not in the module.
  explicit Module(std::string_view data);

  const Kind &kind(size_t instruction) const { return kinds_[instructions[instruction].opcode]; }
  Entries attributes(size_t instruction) const;
  Numbers dimensions(size_t instruction) const {
    return dimensionsOf(instructions[instruction].shape);
  }

  /// The text of an instruction's `MetadataPayload`, its own or that of the module's table; none
  /// if it has no payload.
  std::optional<std::string_view> payload(size_t instruction) const;

  /// Returns the instruction that computes the value of `instruction`. Looks through parameters and
  /// results of fusions, calls and asynchronous pairs, and into loops that do not change the value.
  size_t findSource(size_t instruction) const { return findSource(instruction, 0); }

  /// Returns the instruction that computes the value of a wrapper; other instructions themselves.
  size_t findWrapped(size_t instruction) const;

  /// The instructions that compute the module's results.
  std::vector<size_t> results() const;

  /// All instructions, users before operands. Those of a called computation come at the caller.
  std::vector<size_t> usersFirst() const;

  std::string_view name, stackFrames;
  size_t entry = 0; // The computation that runs first.
  std::vector<Instruction> instructions;
  std::vector<Computation> computations;

private:
  using ById = ir::FlatMap<uint64_t, size_t>;
  static constexpr size_t kUnknown = size_t(-1);
  size_t findSource(size_t instruction, int depth) const;
  size_t followSource(size_t instruction, int depth) const;
  std::optional<size_t> elementOf(size_t made, size_t index, int depth) const;
  void readComputation(std::string_view data);
  void readInstruction(std::string_view data, ById &byId);
  size_t numberOf(std::string_view opcode);
  void findCallers();

  std::vector<std::string_view> payloads_;
  std::vector<Kind> kinds_;
  std::map<std::string_view, size_t> opcodes_; // Into `kinds_`, by name.
  ById byId_;
  mutable std::vector<size_t> sources_; // By instruction, what `findSource` found before.
};

/// Returns by computation the fusion that it is part of, as its body or the body of a reduction in
/// it; `kNone` for others.
std::vector<int64_t> findFusions(const Module &module);

/// Returns by computation whether an instruction applies it to elements: not a loop, a branch, a
/// call or a fusion, but a reduction, a sort, a scatter or a collective.
std::vector<bool> findApplied(const Module &module);

} // namespace hlotag::hlo
