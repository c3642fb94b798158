// SPDX-License-Identifier: Apache-2.0
//
// What do opcodes do, and which of them may an operation of the program become?
//
// XLA names a replacement after the replaced operation, and sometimes after a neighbour: a dot with
// a folded transpose has the name of the transpose. So hlotag believes a name only if the kind of
// the operation and the opcode agree.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hlotag::hlo {

/// The cost class of an operation or instruction. Rewrites may lower the class, never raise it.
enum class Cost : uint8_t {
  Glue,      ///< computes nothing: tuples, copies, wrappers
  Layout,    ///< moves elements
  Pointwise, ///< computes element by element
  Heavy      ///< everything else
};

/// What a heavy instruction computes. XLA rewrites few of these to others.
enum class Heavy : uint8_t {
  None,
  AllGather,
  AllReduce,
  AllToAll,
  CollectiveBroadcast,
  CollectivePermute,
  Conditional,
  Contraction, ///< a product of matrices, or a convolution
  CustomCall,
  Fft,
  Gather,
  Infeed,
  LinearAlgebra,
  Outfeed,
  Recv,
  Reduce,
  ReduceScatter,
  Rng,
  Scatter,
  Send,
  Sort,
  While
};

/// What else is true of an opcode.
enum OpcodeFact : unsigned {
  kMoves = 1 << 0,      ///< moves values without computing any; an iota may be a broadcast of one
  kRelabels = 1 << 1,   ///< renames the dimensions of elements; computes nothing
  kReshapes = 1 << 2,   ///< XLA inserts it to change a shape or layout
  kXlasOwn = 1 << 3,    ///< XLA's own instruction, if it has no name
  kCopies = 1 << 4,     ///< copies a whole value
  kSlices = 1 << 5,     ///< takes a part of its first operand
  kCommutes = 1 << 6,   ///< XLA may swap the operands
  kCollective = 1 << 7, ///< communicates between devices
  kCombines = 1 << 8,   ///< XLA combines several such collectives
  kRunsOthers = 1 << 9, ///< runs a computation once or several times: a fusion, a loop
  kWraps = 1 << 10,     ///< has the value of the computation that it, or its start, calls
  kFusion = 1 << 11,
  kCall = 1 << 12,
  kLoop = 1 << 13,
  kParameter = 1 << 14,
  kElement = 1 << 15, ///< of a tuple
  kTuple = 1 << 16,
  kConstant = 1 << 17,
  kAsyncStart = 1 << 18,
  kDone = 1 << 19 ///< the end of an asynchronous operation
};

/// One opcode, or the opcode that an operation becomes.
struct Kind {
  std::string name;    ///< of the operation, or the opcode itself
  std::string becomes; ///< the opcode; empty if it depends
  Cost cost = Cost::Pointwise;
  Heavy heavy = Heavy::None;
  unsigned facts = 0;

  explicit Kind(std::string_view name);
  bool is(OpcodeFact fact) const { return (facts & fact) != 0; }
  /// Whether it is known to do heavy work: a custom call may do none.
  bool isHeavy() const { return cost == Cost::Heavy && heavy != Heavy::CustomCall; }
};

/// Returns whether an instruction has the opcode that XLA translates the operation to.
inline bool isSame(const Kind &operation, const Kind &instruction) {
  return operation.becomes == instruction.name;
}

/// Returns whether an operation may have become an instruction that is not glue.
bool mayBe(const Kind &operation, const Kind &instruction);

/// What an instruction does for an operation that it came from.
enum class Role : uint8_t {
  Computes, ///< the operation's arithmetic, or the move that the operation is
  Part,     ///< a piece of what XLA expanded the operation to
  Carries   ///< moves the operation's result
};
Role roleOf(const Kind &operation, const Kind &instruction);

/// Returns whether an instruction that is a part of an operation may be all that XLA left of the
/// operation's arithmetic. A sum is no product, even if XLA made a product the sum of pointwise
/// ones, which may be in another kernel.
bool replaces(const Kind &operation, const Kind &instruction);

/// All opcodes of which `fact` is true.
std::vector<std::string_view> opcodesThat(OpcodeFact fact);

} // namespace hlotag::hlo
