// SPDX-License-Identifier: Apache-2.0
#include "hlo/operations.h"

#include "testing.h"

using namespace hlotag;
using namespace hlotag::hlo;

namespace {

/// A sine, and `numMoves` reshapes, each of the one before it.
Program makeChain(int64_t numMoves) {
  Program program;
  program.kinds = {Kind("stablehlo.sine"), Kind("stablehlo.reshape")};
  program.entries = {{}};
  for (int64_t number = 0; number <= numMoves; ++number) {
    Program::Operation operation{};
    operation.dimensions = {4};
    operation.kind = number != 0;
    if (number != 0)
      operation.operands = {number - 1};
    program.operations.push_back(operation);
  }
  return program;
}

} // namespace

TEST(hlo_sources_are_found_through_a_bounded_chain_of_moves) {
  Program program = makeChain(Operations::kMaxMoves + 1);
  Operations operations(program);
  Kind sine("sine");
  CHECK_EQ(operations.findSource(Operations::kMaxMoves, sine), 0);
  CHECK_EQ(operations.findSource(Operations::kMaxMoves + 1, sine), kNone);
}

TEST(hlo_relabellings_are_found_through_a_bounded_chain_of_moves) {
  Program program = makeChain(Operations::kMaxMoves + 1);
  Operations operations(program);
  CHECK_EQ(operations.relabellings(0).size(), size_t(Operations::kMaxMoves));
  CHECK_EQ(operations.relabellings(Operations::kMaxMoves).size(), size_t(1));
}

TEST(hlo_moves_in_a_cycle_of_calls_have_no_source) {
  Program program = makeChain(2);
  program.operations[1].operands = {2};
  Operations operations(program);
  CHECK_EQ(operations.findSource(2, Kind("sine")), kNone);
}
