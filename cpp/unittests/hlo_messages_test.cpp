// SPDX-License-Identifier: Apache-2.0
//
// What becomes of modules that XLA's parser does not write? Others are in lit_tests/hlo.
#include "hlo/fields.h"
#include "hlotag/hlo/edit.h"
#include "hlotag/hlo/join.h"
#include "hlotag/hlo/module.h"
#include "hlotag/hlo/wire.h"
#include "hlotag/hlo/work.h"

#include "testing.h"

#include <string>
#include <string_view>
#include <vector>

using namespace hlotag;
using namespace hlotag::hlo;

namespace {

using Ids = std::vector<uint64_t>;

/// A serialized module. Ids of instructions and computations count from 1.
class Messages {
public:
  Messages &add(std::string_view opcode, const Ids &operands = {}, const Ids &called = {},
                std::string_view rest = {}) {
    using namespace fields;
    std::string made(rest);
    wire::append(made, instruction::kId, ++numInstructions_);
    wire::append(made, instruction::kOpcode, opcode);
    for (uint64_t operand : operands)
      wire::append(made, instruction::kOperandIds, operand);
    for (uint64_t computation : called)
      wire::append(made, instruction::kCalledIds, computation);
    wire::append(body_, computation::kInstructions, made);
    return *this;
  }

  /// Ends a computation, whose root is the last instruction.
  Messages &end() {
    wire::append(body_, fields::computation::kId, ++numComputations_);
    wire::append(body_, fields::computation::kRootId, numInstructions_);
    wire::append(data_, fields::module::kComputations, body_);
    body_.clear();
    return *this;
  }

  /// Ends the entry, and returns the module.
  std::string endEntry() {
    end();
    wire::append(data_, fields::module::kEntryId, numComputations_);
    return data_;
  }

private:
  std::string data_, body_;
  uint64_t numInstructions_ = 0, numComputations_ = 0;
};

} // namespace

TEST(hlo_references_to_what_comes_later_are_refused) {
  for (const std::string &data :
       {Messages().add("add", {1, 1}).endEntry(), Messages().add("call", {}, {1}).endEntry()})
    CHECK_THROWS(Module(data), wire::ModuleError, "refers to an id that the module lacks");
}

TEST(hlo_calls_need_a_computation) {
  for (std::string_view opcode : {"fusion", "call", "async-start"}) {
    std::string data = Messages().add("parameter").add(opcode, {1}).endEntry();
    CHECK_THROWS(Module(data), wire::ModuleError, "a call has no callee");
  }
}

TEST(hlo_calls_need_the_arguments_of_their_computation) {
  std::string data = Messages().add("parameter").end().add("fusion", {}, {1}).endEntry();
  CHECK_THROWS(Module(data).findSource(1), wire::ModuleError, "too few operands or callees");
}

TEST(hlo_modules_that_are_cut_off_are_refused) {
  std::string data = Messages().add("parameter").add("sine", {1}).endEntry();
  CHECK_EQ(Module(data).instructions.size(), size_t(2));
  for (size_t size = 0; size < data.size(); ++size)
    CHECK_THROWS(Module(data.substr(0, size)), wire::ModuleError, "");
}

TEST(hlo_ends_may_call_what_their_starts_call) {
  std::string data = Messages()
                         .add("parameter")
                         .add("sine", {1})
                         .end()
                         .add("parameter")
                         .add("async-start", {3}, {1})
                         .add("async-done", {4}, {1})
                         .endEntry();
  Module module(data);
  CHECK_EQ(module.findSource(4), size_t(1));
  CHECK_EQ(module.findSource(0), size_t(2));
  CHECK_EQ(module.findWrapped(3), size_t(1));
}

TEST(join_finds_nothing_heavier_than_an_end_of_nothing) {
  std::string data = Messages().add("all-reduce-done").endEntry();
  CHECK_EQ(findHeaviest(Module(data))[0], size_t(0));
}

TEST(work_of_a_window_of_zeros_is_some_number) {
  using namespace fields;
  std::string dimension, all, dimensions, rest;
  for (int field : {window::kSize, window::kStride, window::kPaddingLow, window::kDilation,
                    window::kBaseDilation})
    wire::append(dimension, field, uint64_t(0));
  wire::append(all, window::kDimensions, dimension);
  wire::append(dimensions, convolution::kInputSpatial, uint64_t(0));
  wire::append(dimensions, convolution::kOutputSpatial, uint64_t(0));
  wire::append(rest, instruction::kWindow, all);
  wire::append(rest, instruction::kConvolutionDimensions, dimensions);
  std::string data =
      Messages().add("parameter").add("parameter").add("convolution", {1, 2}, {}, rest).endEntry();
  CHECK_EQ(measureWork(Module(data))[2].flops, uint64_t(0));
}

TEST(restore_chains_stack_frames) {
  std::string frames, frame, module, file;
  wire::append(file, 1, std::string_view("name"));
  wire::append(frame, 1, uint64_t(5));
  wire::append(frame, fields::frames::kParent, uint64_t(9));
  wire::append(frames, 1, file);
  for (int i = 0; i < 2; ++i)
    wire::append(frames, fields::frames::kFrames, frame);
  wire::append(module, 1, std::string_view("m"));
  wire::append(module, fields::module::kStackFrames, frames);
  std::string expected, chained;
  wire::append(chained, 1, file);
  for (uint64_t parent : {0, 1}) {
    std::string each;
    wire::append(each, 1, uint64_t(5));
    wire::append(each, fields::frames::kParent, parent);
    wire::append(chained, fields::frames::kFrames, each);
  }
  wire::append(expected, 1, std::string_view("m"));
  wire::append(expected, fields::module::kStackFrames, chained);
  CHECK(chainFrames(module) == expected);
}
