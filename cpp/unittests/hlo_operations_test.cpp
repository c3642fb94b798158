// SPDX-License-Identifier: Apache-2.0
#include "hlo/operations.h"

#include "testing.h"

using namespace hlotag;
using namespace hlotag::hlo;

namespace {

/// Reshapes move and relabel; a sine becomes a sine.
struct ReshapeOpcodes final : Opcodes {
  Traits traitsOf(std::string_view name) override {
    bool isMove = name == "reshape";
    return {std::string(name), isMove, isMove, false, {}, false, isMove};
  }
  bool mayBe(std::string_view name, std::string_view opcode) override { return name == opcode; }
};

/// A sine, and `numMoves` reshapes, each of the one before it.
Program makeChain(int64_t numMoves) {
  Program program;
  program.names = {"sine", "reshape"};
  program.entries = {{}};
  program.dimensions = {{4}};
  for (int64_t number = 0; number <= numMoves; ++number) {
    Program::Operation operation{};
    operation.name = number != 0;
    if (number != 0)
      operation.operands = {number - 1};
    program.operations.push_back(operation);
  }
  return program;
}

} // namespace

TEST(hlo_sources_are_found_through_a_bounded_chain_of_moves) {
  ReshapeOpcodes opcodes;
  Kinds kinds(opcodes);
  Program program = makeChain(Operations::kMaxMoves + 1);
  Operations operations(program, kinds);
  size_t sine = kinds.of("sine");
  CHECK_EQ(operations.findSource(Operations::kMaxMoves, sine), 0);
  CHECK_EQ(operations.findSource(Operations::kMaxMoves + 1, sine), kNone);
}

TEST(hlo_relabellings_are_found_through_a_bounded_chain_of_moves) {
  ReshapeOpcodes opcodes;
  Kinds kinds(opcodes);
  Program program = makeChain(Operations::kMaxMoves + 1);
  Operations operations(program, kinds);
  CHECK_EQ(operations.relabellings(0).size(), size_t(Operations::kMaxMoves));
  CHECK_EQ(operations.relabellings(Operations::kMaxMoves).size(), size_t(1));
}

TEST(hlo_moves_in_a_cycle_of_calls_have_no_source) {
  ReshapeOpcodes opcodes;
  Kinds kinds(opcodes);
  Program program = makeChain(2);
  program.operations[1].operands = {2};
  Operations operations(program, kinds);
  CHECK_EQ(operations.findSource(2, kinds.of("sine")), kNone);
}
