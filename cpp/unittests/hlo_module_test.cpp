// SPDX-License-Identifier: Apache-2.0
#include "hlotag/hlo/module.h"

#include "hlo/fields.h"
#include "hlotag/hlo/wire.h"
#include "testing.h"

#include <algorithm>
#include <stdexcept>

using namespace hlotag;
using namespace hlotag::hlo;

namespace {

std::string instruction(uint64_t id, std::string_view opcode, std::vector<uint64_t> operands = {},
                        std::vector<uint64_t> called = {}) {
  std::string message;
  wire::append(message, fields::instruction::kId, id);
  wire::append(message, fields::instruction::kOpcode, opcode);
  for (uint64_t operand : operands)
    wire::append(message, fields::instruction::kOperandIds, operand);
  for (uint64_t computation : called)
    wire::append(message, fields::instruction::kCalledIds, computation);
  return message;
}

/// A computation; its last instruction, the root, has the id `root`.
std::string computation(uint64_t id, uint64_t root, const std::vector<std::string> &instructions) {
  std::string message;
  wire::append(message, fields::computation::kId, id);
  wire::append(message, fields::computation::kRootId, root);
  for (const std::string &instruction : instructions)
    wire::append(message, fields::computation::kInstructions, instruction);
  return message;
}

std::string module(uint64_t entry, const std::vector<std::string> &computations) {
  std::string message;
  wire::append(message, fields::module::kEntryId, entry);
  for (const std::string &computation : computations)
    wire::append(message, fields::module::kComputations, computation);
  return message;
}

} // namespace

TEST(hlo_values_are_followed_through_fusions) {
  std::string data = module(
      2, {computation(1, 1, {instruction(1, "parameter")}),
          computation(2, 3, {instruction(2, "parameter"), instruction(3, "fusion", {2}, {1})})});
  CHECK_EQ(Module(data).findSource(2), size_t(1));
}

TEST(hlo_values_are_followed_through_asynchronous_pairs) {
  std::string data = module(
      2,
      {computation(1, 2, {instruction(1, "parameter"), instruction(2, "sine", {1})}),
       computation(2, 7,
                   {instruction(3, "parameter"), instruction(4, "async-start", {3}, {1}),
                    instruction(5, "async-done", {4}, {1}), instruction(6, "all-reduce-start", {5}),
                    instruction(7, "all-reduce-done", {6})})});
  Module made(data);
  CHECK_EQ(made.findSource(4), size_t(1)); // of async-done: the sine
  CHECK_EQ(made.findSource(0), size_t(2)); // of the parameter: the operand of async-start
  CHECK_EQ(made.findWrapped(3), size_t(1));
  CHECK_EQ(made.findSource(6), size_t(5));
}

TEST(hlo_computations_that_fusions_share_are_followed_no_further) {
  std::string data =
      module(2, {computation(1, 1, {instruction(1, "parameter")}),
                 computation(2, 4,
                             {instruction(2, "parameter"), instruction(3, "fusion", {2}, {1}),
                              instruction(4, "fusion", {3}, {1})})});
  Module shared(data);
  CHECK_EQ(shared.findSource(3), size_t(0));
  CHECK_EQ(shared.findSource(2), size_t(0));
}

TEST(hlo_instructions_of_shared_computations_are_listed_once) {
  // Each computation calls the previous one twice, so 2^63 paths lead to the first.
  std::vector<std::string> computations{computation(1, 1, {instruction(1, "parameter")})};
  for (uint64_t id = 2; id <= 64; ++id)
    computations.push_back(
        computation(id, id, {instruction(id, id % 2 ? "fusion" : "call", {}, {id - 1, id - 1})}));
  std::string data = module(64, computations);
  std::vector<size_t> order = Module(data).usersFirst();
  std::sort(order.begin(), order.end());
  CHECK_EQ(order.size(), size_t(64));
  CHECK(std::adjacent_find(order.begin(), order.end()) == order.end());
}

TEST(hlo_references_to_what_comes_later_are_refused) {
  std::string itself = module(1, {computation(1, 1, {instruction(1, "add", {1, 1})})});
  CHECK_THROWS(Module(itself), hlotag::wire::ModuleError, "refers to an id that the module lacks");
  std::string recursive = module(1, {computation(1, 1, {instruction(1, "call", {}, {1})})});
  CHECK_THROWS(Module(recursive), hlotag::wire::ModuleError,
               "refers to an id that the module lacks");
}
