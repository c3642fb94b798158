// SPDX-License-Identifier: Apache-2.0
//
// Passes on modules that are made from the fuzzer's bytes: operations, attributes, locations, calls
// and regions as JAX writes them, and as it never would. A pass fails and leaves the module as it
// was, or succeeds: then the module is valid, running it again changes nothing, and running it on a
// copy gives the same.
#include "check.h"
#include "upstream.h"

#include "hlotag/capi/table.h"
#include "hlotag/pass/run.h"
#include "hlotag/passes/passes.h"

#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace hlotag;

namespace {

struct Step {
  const char *pass;
  passes::OptionValues options = {};
};
using Steps = std::vector<Step>;

const std::vector<Steps> &pipelines() {
  using Strings = std::vector<std::string>;
  static const std::string rules =
      R"([{op = "add", attrs = {k = "v"}}, {scope = "a/*", phase = "backward", attrs = {l = "w"}, )"
      R"(grad = {}}, {function = "f1", source = "m.py:3", attrs = {m = "x"}}])";
  static const std::string anyOfA = R"([{op = "*", scope = "a", attrs = {k = "v"}}])";
  static const std::vector<Steps> all{
      {{"hlotag-resolve"}},
      {{"hlotag-propagate"}},
      {{"hlotag-propagate", {{"max-clones", int64_t{3}}}}},
      {{"hlotag-propagate-autodiff"}},
      {{"hlotag-attach", {{"rules", rules}}}},
      {{"hlotag-strip"}},
      {{"hlotag-strip", {{"keys", Strings{"k*", "MUST_FUSE"}}}}},
      {{"hlotag-finalize"}},
      {{"hlotag-resolve"},
       {"hlotag-attach", {{"rules", anyOfA}}},
       {"hlotag-propagate-autodiff"},
       {"hlotag-propagate"},
       {"hlotag-finalize"}},
  };
  return all;
}

pass::Pipeline makePipeline(const Steps &steps) {
  pass::Pipeline pipeline;
  for (const Step &step : steps)
    pipeline.push_back(passes::makePass(step.pass, step.options));
  return pipeline;
}

constexpr const char *kKeys[] = {"k",
                                 "l",
                                 "kk",
                                 "MUST_FUSE",
                                 "_scheduling_group_id",
                                 "collective_group_key",
                                 "inlineable",
                                 "xla.sdy.sharding",
                                 "\"hlotag.grad.k\"",
                                 "\"\""};
constexpr const char *kValues[] = {"\"v\"",
                                   "\"w\"",
                                   "\"1\"",
                                   "\"\"",
                                   "[\"hlotag.unset\"]",
                                   "true",
                                   "7 : i32",
                                   "unit",
                                   "\"hlotag.unset\"",
                                   "{a = \"b\"}"};
constexpr const char *kElements[] = {"jit(f)",
                                     "jvp(a)",
                                     "transpose(jvp(a))",
                                     "jvp()",
                                     "transpose(jvp())",
                                     "vmap(a)",
                                     "while",
                                     "body",
                                     "cond",
                                     "a",
                                     "b",
                                     "checkpoint",
                                     "rematted_computation",
                                     "closed_call",
                                     "shard_map",
                                     "jit(g)",
                                     "transpose(",
                                     ")",
                                     "",
                                     "\\01hlotag#0\\01",
                                     "\\01hlotag#1\\01",
                                     "\\01hlotag#9\\01",
                                     "\\01hlotag#",
                                     "\\FF"};
constexpr const char *kPrimitives[] = {"add",     "mul",       "sin", "dot_general",
                                       "add_any", "transpose", "neg", "jit(g)",
                                       "",        "while",     "cond"};
constexpr const char *kUnary[] = {"stablehlo.sine",         "stablehlo.negate",
                                  "stablehlo.transpose",    "stablehlo.broadcast_in_dim",
                                  "stablehlo.custom_call",  "chlo.erf",
                                  "stablehlo.reshape",      "mhlo.copy",
                                  "sdy.sharding_constraint"};
constexpr const char *kBinary[] = {"stablehlo.add", "stablehlo.multiply", "stablehlo.dot_general",
                                   "stablehlo.subtract"};
constexpr const char *kRegions[] = {"stablehlo.while", "stablehlo.case", "stablehlo.reduce",
                                    "stablehlo.if", "sdy.manual_computation"};

/// Writes the text of a module, in generic form but for functions.
class Writer {
public:
  /// Without `controlFlow`, operations with regions are none that have a meaning to passes.
  Writer(FuzzedDataProvider &input, bool controlFlow) : input_(input), controlFlow_(controlFlow) {}

  std::string write() {
    numFunctions_ = input_.ConsumeIntegralInRange(1, 4);
    text_ = "module ";
    if (chance(2))
      text_ += "attributes {hlotag.tags = " + table() + "} ";
    text_ += "{\n";
    for (int i = 0; i < numFunctions_; ++i)
      function(i);
    return text_ + "} loc(" + location(2) + ")\n";
  }

private:
  bool chance(int of) { return input_.ConsumeIntegralInRange(1, of) == 1; }
  template <size_t N> std::string pick(const char *const (&from)[N]) {
    return input_.PickValueInArray(from);
  }

  std::string table() {
    std::string entries;
    for (int i = input_.ConsumeIntegralInRange(0, 2); i > 0; --i)
      entries += std::string(entries.empty() ? "" : ", ") + "{entries = " + dictionary() + "}";
    return "[" + entries + "]";
  }

  std::string dictionary() {
    std::string entries;
    for (int i = input_.ConsumeIntegralInRange(0, 3); i > 0; --i) {
      std::string key = pick(kKeys);
      if (entries.find(key + " ") == std::string::npos && key != "\"\"")
        entries +=
            (entries.empty() ? "" : ", ") + key + " = " + (chance(4) ? pick(kValues) : "\"v\"");
    }
    return "{" + entries + "}";
  }

  std::string attributes() {
    std::string result;
    auto add = [&](const std::string &name, const std::string &value) {
      result += (result.empty() ? "" : ", ") + name + " = " + value;
    };
    if (chance(2))
      add("mhlo.frontend_attributes", chance(30) ? pick(kValues) : dictionary());
    if (chance(12))
      add("hlotag.derived", chance(10) ? "[]" : dictionary());
    return result;
  }

  std::string name() {
    std::string text;
    for (int i = input_.ConsumeIntegralInRange(0, 4); i > 0; --i)
      text += pick(kElements) + (chance(6) ? "" : "/");
    return text + pick(kPrimitives);
  }

  std::string location(int depth) {
    switch (input_.ConsumeIntegralInRange(0, 7)) {
    case 0:
      return "unknown";
    case 1:
      return "\"m.py\":" + std::to_string(input_.ConsumeIntegralInRange(0, 4)) + ":1";
    case 2:
      return "\"" + name() + "\"";
    case 3:
      if (depth)
        return "callsite(" + location(depth - 1) + " at " + location(depth - 1) + ")";
      break;
    case 4:
      if (depth)
        return "fused[" + location(depth - 1) + ", " + location(depth - 1) + "]";
      break;
    case 5:
      if (depth)
        return "\"" + name() + "\"(" + location(depth - 1) + ")";
      break;
    default:
      break;
    }
    std::string line = std::to_string(input_.ConsumeIntegralInRange(1, 4));
    return "\"" + name() + "\"(\"f\"(\"m.py\":" + line + ":2 to :9))";
  }

  void function(int number) {
    text_ += "func.func " + std::string(number ? "private " : "public ") + "@f" +
             std::to_string(number) + "(%0: tensor<f32>) -> tensor<f32>";
    if (std::string attrs = attributes(); !attrs.empty())
      text_ += " attributes {" + attrs + "}";
    text_ += " {\n";
    visible_ = {0};
    block(2);
    text_ += "func.return " + last() + " : tensor<f32>";
    end();
    text_ += "}";
    end();
  }

  void block(int depth) {
    for (int i = input_.ConsumeIntegralInRange(0, 6); i > 0 && text_.size() < 20000; --i)
      operation(depth);
  }

  std::string value() {
    size_t at = input_.ConsumeIntegralInRange<size_t>(0, visible_.size() - 1);
    return "%" + std::to_string(visible_[at]);
  }
  std::string last() const { return "%" + std::to_string(visible_.back()); }
  std::string define() {
    visible_.push_back(++lastValue_);
    return last();
  }
  void end() { text_ += " loc(" + location(2) + ")\n"; }

  void operation(int depth) {
    std::string name, operands, types, extra;
    int kind = input_.ConsumeIntegralInRange(0, 9);
    if (kind < 3) {
      name = pick(kUnary), operands = value(), types = "tensor<f32>";
    } else if (kind < 6) {
      name = pick(kBinary), operands = value() + ", " + value(), types = "tensor<f32>, tensor<f32>";
    } else if (kind == 6) {
      name = "stablehlo.constant", extra = "value = dense<1.0> : tensor<f32>";
    } else if (kind == 7 || depth == 0) {
      // Within an operation that MLIR does not know, it finds no function for a call.
      name = depth < 2 || chance(8) ? "stablehlo.composite" : "func.call", operands = value(),
      types = "tensor<f32>";
      extra = (name == "func.call" ? "callee = @f" : "decomposition = @f") +
              std::to_string(input_.ConsumeIntegralInRange(0, numFunctions_ - 1));
    } else {
      name = controlFlow_ ? pick(kRegions) : "stablehlo.reduce", operands = value(),
      types = "tensor<f32>";
    }
    std::string attrs = attributes();
    if (!extra.empty())
      attrs = attrs.empty() ? extra : extra + ", " + attrs;
    std::string head = "\"" + name + "\"(" + operands + ")";
    bool hasRegions = kind > 7 && depth > 0;
    std::string regions =
        hasRegions ? " (" + region(depth - 1) + (chance(2) ? ", " + region(depth - 1) : "") + ")"
                   : "";
    text_ += define() + " = " + head + regions + (attrs.empty() ? "" : " {" + attrs + "}") +
             " : (" + types + ") -> tensor<f32>";
    end();
  }

  std::string region(int depth) {
    std::string outer = std::move(text_);
    size_t numVisible = visible_.size();
    text_ = "{\n^bb(" + define() + ": tensor<f32>):\n";
    block(depth);
    text_ += "\"stablehlo.return\"(" + last() + ") : (tensor<f32>) -> ()";
    visible_.resize(numVisible);
    end();
    text_ += "}";
    std::swap(outer, text_);
    return outer;
  }

  FuzzedDataProvider &input_;
  bool controlFlow_;
  std::string text_;
  int numFunctions_ = 0;
  int lastValue_ = 0;
  std::vector<int> visible_; ///< the numbers of the values that an operation here may use
};

using fuzz::print;

void check(MlirOperation module, const Steps &steps) {
  pass::Pipeline pipeline = makePipeline(steps);
  std::string before = print(module);
  MlirOperation copy = capi::fn().mlirOperationClone(module);
  pass::RunResult result = pass::run(module, pipeline);
  std::string after = print(module);
  std::string said = result.diagnostics.empty() ? "" : result.diagnostics.front().message;
  if (!result.ok) {
    fuzz::require(after == before, "a failure changes nothing", before);
    fuzz::require(!result.diagnostics.empty(), "a failure has a reason", before);
    fuzz::require(said.find("verif") == std::string::npos || !result.failingPass.empty(),
                  "what was made is valid", said);
  } else {
    fuzz::require(capi::fn().mlirOperationVerify(module), "the result is valid", after);
    pass::run(module, pipeline); // may fail, of something that only now is looked at
    std::string twice = print(module);
    // A pipeline takes its marks and notes out at the end, and begins without them the next time.
    bool forgets = pipeline.size() > 1 || before.find("hlotag.unset") != std::string::npos;
    fuzz::require(twice == after || forgets, "running again changes nothing",
                  std::string(steps[0].pass) + "\n" + before + "\nonce:\n" + after + "\ntwice:\n" +
                      twice);
  }
  pass::RunResult onCopy = pass::run(copy, pipeline);
  fuzz::require(onCopy.ok == result.ok, "a copy is treated the same", before);
  fuzz::require(!result.ok || print(copy) == after, "a copy gives the same", before);
  fuzz::destroyModule(copy);
}

} // namespace

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  fuzz::installUpstream();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  FuzzedDataProvider input(data, size);
  const Steps &steps = pipelines()[input.ConsumeIntegralInRange<size_t>(0, pipelines().size() - 1)];
  // Derivation counts on what StableHLO's verifier checks of loops and branches, and upstream's
  // MLIR has no StableHLO.
  bool derives = std::any_of(steps.begin(), steps.end(), [](const Step &step) {
    return std::string_view(step.pass) == "hlotag-propagate-autodiff";
  });
  std::string text = Writer(input, !derives).write();
  MlirContext context = fuzz::makeContext();
  if (MlirOperation module = fuzz::parseModule(context, text); module.ptr) {
    check(module, steps);
    fuzz::destroyModule(module);
  } else if (getenv("HLOTAG_FUZZ_PRINT")) {
    std::fprintf(stderr, "not a module:\n%s\n", text.c_str());
  }
  fuzz::destroyContext(context);
  return 0;
}
