// SPDX-License-Identifier: Apache-2.0
#include "hlotag/hlo/work.h"

#include "hlo/fields.h"
#include "hlotag/hlo/wire.h"
#include "testing.h"

using namespace hlotag;
using namespace hlotag::hlo;

namespace {

constexpr uint64_t kF32 = 11;

std::string shape(const std::vector<uint64_t> &dimensions) {
  std::string message;
  wire::append(message, fields::shape::kElementType, kF32);
  for (uint64_t size : dimensions)
    wire::append(message, fields::shape::kDimensions, size);
  return message;
}

struct Made {
  uint64_t id;
  std::string_view opcode;
  std::vector<uint64_t> dimensions, operands, called;
};

std::string instruction(const Made &made, std::string_view more = {}) {
  std::string message(more);
  wire::append(message, fields::instruction::kId, made.id);
  wire::append(message, fields::instruction::kOpcode, made.opcode);
  wire::append(message, fields::instruction::kShape, shape(made.dimensions));
  for (uint64_t operand : made.operands)
    wire::append(message, fields::instruction::kOperandIds, operand);
  for (uint64_t computation : made.called)
    wire::append(message, fields::instruction::kCalledIds, computation);
  return message;
}

std::string computation(uint64_t id, uint64_t root, const std::vector<std::string> &instructions) {
  std::string message;
  wire::append(message, fields::computation::kId, id);
  wire::append(message, fields::computation::kRootId, root);
  for (const std::string &each : instructions)
    wire::append(message, fields::computation::kInstructions, each);
  return message;
}

std::vector<Work> measure(uint64_t entry, const std::vector<std::string> &computations) {
  std::string message;
  wire::append(message, fields::module::kEntryId, entry);
  for (const std::string &each : computations)
    wire::append(message, fields::module::kComputations, each);
  return measureWork(Module(message));
}

} // namespace

TEST(work_of_a_product_is_two_flops_for_each_pair) {
  std::string dimensions, dot;
  wire::append(dimensions, fields::dot::kLhsContracting, uint64_t(1));
  wire::append(dot, fields::instruction::kDotDimensions, dimensions);
  std::vector<Work> work =
      measure(1, {computation(1, 3,
                              {instruction({1, "parameter", {4, 8}, {}, {}}),
                               instruction({2, "parameter", {8, 16}, {}, {}}),
                               instruction({3, "dot", {4, 16}, {1, 2}, {}}, dot)})});
  CHECK_EQ(work[0].effort(), uint64_t(0));
  CHECK_EQ(work[2].flops, uint64_t(2 * 4 * 16 * 8));
  CHECK_EQ(work[2].bytes, uint64_t(4 * 4 * 16));
}

TEST(work_within_a_fusion_reaches_no_memory) {
  std::vector<Work> work = measure(2, {computation(1, 3,
                                                   {instruction({1, "parameter", {64}, {}, {}}),
                                                    instruction({2, "broadcast", {64}, {1}, {}}),
                                                    instruction({3, "add", {64}, {1, 2}, {}})}),
                                       computation(2, 5,
                                                   {instruction({4, "parameter", {64}, {}, {}}),
                                                    instruction({5, "fusion", {64}, {4}, {1}})})});
  CHECK_EQ(work[1].effort(), uint64_t(0)); // Stays in the fusion.
  CHECK_EQ(work[2].flops, uint64_t(64));
  CHECK_EQ(work[2].bytes, uint64_t(256));  // Is the fusion's result.
  CHECK_EQ(work[4].effort(), uint64_t(0)); // What is in it has the work.
}

TEST(work_of_a_gather_is_what_it_reads) {
  std::vector<Work> work = measure(1, {computation(1, 2,
                                                   {instruction({1, "parameter", {1000}, {}, {}}),
                                                    instruction({2, "gather", {10}, {1}, {}})})});
  CHECK_EQ(work[1].flops, uint64_t(0));
  CHECK_EQ(work[1].bytes, uint64_t(40));
  CHECK_EQ(work[1].effort(), uint64_t(10));
}

TEST(work_that_is_applied_belongs_to_who_applies_it) {
  std::vector<Work> work =
      measure(2, {computation(1, 2,
                              {instruction({1, "parameter", {}, {}, {}}),
                               instruction({2, "add", {}, {1, 1}, {}})}),
                  computation(2, 4,
                              {instruction({3, "parameter", {100}, {}, {}}),
                               instruction({4, "reduce", {10}, {3, 3}, {1}})})});
  CHECK_EQ(work[1].effort(), uint64_t(0));
  CHECK_EQ(work[3].flops, uint64_t(90));
}
