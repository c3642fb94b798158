// SPDX-License-Identifier: Apache-2.0
//
// An HLO module, read from its bytes, and its data flow as if nothing were fused.
#pragma once

#include "hlotag/hlo/kinds.h"
#include "hlotag/ir/flat_map.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hlotag::hlo {

/// Numbers of operations, or of what else a module numbers; where one may be missing, `kNone`.
using Ids = std::vector<int64_t>;
inline constexpr int64_t kNone = -1;

/// Frontend attributes.
using Entries = std::map<std::string, std::string>;

class Module {
public:
  struct Instruction {
    std::string_view opName, shape, attributes; // The latter two are messages.
    size_t opcode, computation;
    std::vector<size_t> operands, called;
    size_t index; // Of a parameter, or of an element of a tuple.
  };
  struct Computation {
    size_t begin, end, root;
    std::optional<size_t> caller; // The fusion, call or loop, if nothing else calls it.
  };

  /// Keeps views of `data`, an `HloModuleProto`. Throws `std::out_of_range` where its bytes end too
  /// early, or instructions refer to what it does not have.
  Module(std::string_view data, Kinds &kinds);

  const Kinds::Kind &kind(size_t instruction) const {
    return kinds_[instructions[instruction].opcode];
  }
  Entries attributes(size_t instruction) const;
  Ids dimensions(size_t instruction) const;

  /// What computes the value that an instruction hands on: through parameters and results of
  /// fusions, calls and asynchronous pairs, and into loops that do not change it.
  size_t source(size_t instruction) const { return source(instruction, 0); }

  /// What computes the value of a wrapper; of others, the instruction itself.
  size_t wrapped(size_t instruction) const;

  /// What computes the results.
  std::vector<size_t> results() const;

  /// All instructions, users before their operands; of fusions, calls and loops at their place.
  std::vector<size_t> usersFirst() const;

  std::vector<Instruction> instructions;
  std::vector<Computation> computations;

private:
  using ById = ir::FlatMap<uint64_t, size_t>;

  size_t source(size_t instruction, int depth) const;
  std::optional<size_t> elementOf(size_t made, size_t index, int depth) const;
  void readComputation(std::string_view data);
  void readInstruction(std::string_view data, ById &byId);
  void findCallers();

  Kinds &kinds_;
  ById byId_;
  size_t entry_ = 0;
  Ids operands_, called_; // Of the instruction that is read.
};

} // namespace hlotag::hlo
