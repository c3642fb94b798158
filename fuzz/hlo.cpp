// SPDX-License-Identifier: Apache-2.0
//
// Modules of XLA's that are valid messages with hostile numbers: sizes, windows, ids, tuples and
// fusions in each other. They are joined, measured and restored, or refused with a reason.
#include "check.h"

#include "hlo/fields.h"
#include "hlotag/hlo/edit.h"
#include "hlotag/hlo/join.h"
#include "hlotag/hlo/restore.h"
#include "hlotag/hlo/work.h"

#include <fuzzer/FuzzedDataProvider.h>

#include <stdexcept>
#include <string>
#include <vector>

using namespace hlotag;
using namespace hlotag::hlo;
namespace names = hlotag::hlo::fields;

namespace {

constexpr std::string_view kToken = "ab";
constexpr const char *kOpcodes[] = {"add",
                                    "all-gather",
                                    "all-gather-done",
                                    "all-gather-start",
                                    "all-reduce",
                                    "all-reduce-done",
                                    "all-reduce-start",
                                    "async-done",
                                    "async-start",
                                    "async-update",
                                    "bitcast",
                                    "broadcast",
                                    "call",
                                    "cholesky",
                                    "concatenate",
                                    "conditional",
                                    "constant",
                                    "convolution",
                                    "copy",
                                    "custom-call",
                                    "dot",
                                    "dynamic-slice",
                                    "dynamic-update-slice",
                                    "fft",
                                    "fusion",
                                    "get-tuple-element",
                                    "map",
                                    "multiply",
                                    "new-opcode",
                                    "pad",
                                    "parameter",
                                    "reduce",
                                    "reduce-scatter",
                                    "reduce-window",
                                    "reshape",
                                    "rng",
                                    "scatter",
                                    "select-and-scatter",
                                    "sine",
                                    "slice",
                                    "sort",
                                    "transpose",
                                    "triangular-solve",
                                    "tuple",
                                    "while"};
constexpr const char *kOperations[] = {"stablehlo.add",         "stablehlo.all_reduce",
                                       "stablehlo.constant",    "stablehlo.dot_general",
                                       "stablehlo.multiply",    "stablehlo.reduce",
                                       "stablehlo.reshape",     "stablehlo.sine",
                                       "stablehlo.while",       "func.call",
                                       "stablehlo.convolution", "stablehlo.broadcast_in_dim"};
constexpr const char *kTexts[] = {"__cublas$gemm",
                                  "__cudnn$convForward",
                                  "tpu_custom_call",
                                  "__cudnn$convBackwardFilter",
                                  "",
                                  R"({"lhs_contracting_dimensions":["1","99999999999999999999"]})",
                                  R"({"cost_estimate":{"flops":9,"transcendentals":)"};
constexpr uint64_t kNumbers[] = {0,
                                 1,
                                 2,
                                 3,
                                 4,
                                 7,
                                 1 << 20,
                                 uint64_t(1) << 31,
                                 uint64_t(1) << 32,
                                 uint64_t(1) << 62,
                                 uint64_t(1) << 63,
                                 ~uint64_t(0)};

/// Writes a module. Most ids are right, so that most of it is read.
class Writer {
public:
  explicit Writer(FuzzedDataProvider &input) : input_(input) {}

  std::string write() {
    std::string made;
    for (size_t c = upTo(6) + 1; c > 0; --c)
      wire::append(made, names::module::kComputations, computation());
    wire::append(made, names::module::kEntryId, chance(30) ? number() : uint64_t(computations_));
    return made;
  }

private:
  bool chance(int of) { return input_.ConsumeIntegralInRange(1, of) == 1; }
  size_t upTo(size_t most) { return input_.ConsumeIntegralInRange<size_t>(0, most); }
  uint64_t number() {
    return chance(3) ? input_.PickValueInArray(kNumbers) : input_.ConsumeIntegralInRange(0, 8);
  }

  std::string computation() {
    std::string made;
    size_t begin = instructions_;
    for (size_t i = upTo(7) + 1; i > 0; --i)
      wire::append(made, names::computation::kInstructions, instruction(begin));
    wire::append(made, names::computation::kId, uint64_t(++computations_));
    wire::append(made, names::computation::kRootId,
                 chance(30) ? number() : uint64_t(instructions_));
    return made;
  }

  std::string shape(int depth = 0) {
    std::string made;
    if (depth < 3 && chance(5))
      for (size_t element = upTo(3); element > 0; --element)
        wire::append(made, names::shape::kTupleShapes, shape(depth + 1));
    wire::append(made, names::shape::kElementType, chance(10) ? number() : uint64_t(11));
    for (size_t d = upTo(4); d > 0; --d)
      wire::append(made, names::shape::kDimensions, number());
    return made;
  }

  std::string numbers(std::initializer_list<int> fields) {
    std::string made;
    for (int field : fields)
      if (!chance(4))
        wire::append(made, field, number());
    return made;
  }

  std::string instruction(size_t begin) {
    using namespace names::instruction;
    std::string made;
    wire::append(made, kOpcode, input_.PickValueInArray(kOpcodes));
    wire::append(made, kShape, shape());
    std::string name, metadata;
    for (size_t numbers = upTo(2); numbers > 0; --numbers)
      name +=
          std::string("\1").append(kToken) + ":" + std::to_string(chance(30) ? 99 : upTo(7)) + "\1";
    wire::append(metadata, names::metadata::kOpName, name + "/jit(f)/sin");
    if (!chance(3))
      wire::append(made, kMetadata, metadata);
    for (size_t operand = upTo(3); operand > 0 && instructions_ > begin; --operand)
      wire::append(made, kOperandIds,
                   chance(30) ? number() : begin + 1 + upTo(instructions_ - begin - 1));
    for (size_t callee = upTo(2); callee > 0 && computations_ > 0; --callee)
      wire::append(made, kCalledIds, chance(30) ? number() : 1 + upTo(computations_ - 1));
    for (int field : {kParameterNumber, kTupleIndex, kChannelId, kBatchGroups, kFftLength})
      if (chance(2))
        wire::append(made, field, number());
    std::string window;
    for (size_t d = upTo(2); d > 0; --d)
      wire::append(window, names::window::kDimensions, numbers({1, 2, 3, 4, 5, 6}));
    wire::append(made, kWindow, window);
    wire::append(made, kConvolutionDimensions, numbers({3, 4, 7, 9, 11, 12, 11, 12}));
    wire::append(made, kDotDimensions, numbers({1, 2, 3, 4}));
    wire::append(made, kTarget, input_.PickValueInArray(kTexts));
    wire::append(made, kBackendConfig, input_.PickValueInArray(kTexts));
    if (chance(2)) {
      std::string entry, attributes;
      wire::append(entry, names::entry::kKey, chance(2) ? "k" : "MUST_FUSE");
      wire::append(entry, names::entry::kValue, chance(2) ? "v" : "w");
      wire::append(attributes, names::attributes::kMap, entry);
      wire::append(made, kFrontendAttributes, attributes);
    }
    wire::append(made, kId, uint64_t(++instructions_));
    return made;
  }

  FuzzedDataProvider &input_;
  size_t instructions_ = 0, computations_ = 0; // the last ids
};

Program programOf(FuzzedDataProvider &input) {
  Program program;
  program.token = kToken;
  for (size_t number = 0; number < 8; ++number) {
    Program::Operation made{};
    made.kind = made.entries = number;
    made.place = input.ConsumeIntegralInRange<size_t>(0, 3);
    made.value = input.ConsumeIntegralInRange<size_t>(0, 7);
    for (size_t operand = input.ConsumeIntegralInRange<size_t>(0, 2); operand > 0; --operand) {
      made.operands.push_back(input.ConsumeIntegralInRange<int64_t>(-1, int64_t(number) - 1));
      made.arguments.emplace_back();
    }
    made.dimensions = {4, 4};
    program.kinds.emplace_back(input.PickValueInArray(kOperations));
    program.entries.push_back({{input.ConsumeBool() ? "k" : "MUST_FUSE", std::to_string(number)}});
    program.operations.push_back(made);
  }
  program.results = {7};
  return program;
}

/// Gives an instruction what its operations have.
class FirstRules final : public Rules {
public:
  explicit FirstRules(const Program &program) : program_(program) {}
  Entries entriesFor(const Case &instruction) override {
    return instruction.own.empty() ? instruction.before : program_.entries[instruction.own[0]];
  }
  bool isRepeated(std::string_view key) override { return key == "k"; }
  std::string labelFor(const Entries &) override { return ""; }

private:
  const Program &program_;
};

void check(const std::string &data, const Program &program) {
  Module module(data);
  for (const Numbers &ids : join(module, program, readNames(module, program)))
    for (int64_t id : ids)
      fuzz::require(size_t(id) < program.operations.size(), "an instruction has operations");
  fuzz::require(measureWork(module).size() == module.instructions.size(), "each has its work");
  FirstRules rules(program);
  std::string restored = restore(data, program, rules, /*keepsNumbers=*/false);
  fuzz::require(Module(restored).instructions.size() == module.instructions.size(),
                "a restored module has the same instructions");
  (void)chainFrames(data);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  FuzzedDataProvider input(bytes, size);
  Program program = programOf(input);
  std::string data = Writer(input).write();
  try {
    check(data, program);
  } catch (const wire::ModuleError &error) {
    fuzz::require(error.what()[0] != 0, "an error has a reason");
  } catch (const std::invalid_argument &error) {
    fuzz::require(error.what()[0] != 0, "an error has a reason");
  }
  return 0;
}
