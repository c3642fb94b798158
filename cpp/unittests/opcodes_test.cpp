// SPDX-License-Identifier: Apache-2.0
#include "hlotag/hlo/opcodes.h"

#include "testing.h"

#include <iterator>
#include <map>
#include <sstream>
#include <utility>

using namespace hlotag::hlo;

namespace {

std::vector<std::string> wordsOf(const std::string &text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

bool mayBe(std::string_view operation, std::string_view opcode) {
  return hlotag::hlo::mayBe(Kind(operation), Kind(opcode));
}

bool isA(std::string_view operation, std::string_view opcode, Role role) {
  return roleOf(Kind(operation), Kind(opcode)) == role;
}

constexpr std::pair<Heavy, const char *> kHeavy[] = {
    {Heavy::AllGather, "all-gather"},
    {Heavy::AllReduce, "all-reduce"},
    {Heavy::AllToAll, "all-to-all ragged-all-to-all"},
    {Heavy::CollectiveBroadcast, "collective-broadcast"},
    {Heavy::CollectivePermute, "collective-permute"},
    {Heavy::Conditional, "conditional"},
    {Heavy::Contraction, "convolution dot"},
    {Heavy::CustomCall, "custom-call"},
    {Heavy::Fft, "fft"},
    {Heavy::Gather, "gather"},
    {Heavy::Infeed, "infeed"},
    {Heavy::LinearAlgebra, "cholesky triangular-solve"},
    {Heavy::Outfeed, "outfeed"},
    {Heavy::Recv, "recv"},
    {Heavy::Reduce, "reduce reduce-window"},
    {Heavy::ReduceScatter, "reduce-scatter"},
    {Heavy::Rng, "rng rng-bit-generator"},
    {Heavy::Scatter, "scatter select-and-scatter"},
    {Heavy::Send, "send"},
    {Heavy::Sort, "sort topk"},
    {Heavy::While, "while"},
};

void checkCosts(Cost cost, const std::string &opcodes) {
  for (const std::string &opcode : wordsOf(opcodes))
    if (Kind(opcode).cost != cost)
      hlotag::testing::report(__FILE__, __LINE__, opcode + " has another cost");
}

std::string opcodesWith(OpcodeFact fact) {
  std::string all;
  for (std::string_view opcode : opcodesThat(fact))
    all.append(all.empty() ? "" : " ").append(opcode);
  return all;
}

/// The heavy opcodes of other classes that XLA may make of an operation.
std::string rewritesOf(const std::string &operation) {
  Kind from("stablehlo." + operation);
  std::string all;
  for (const auto &[heavy, opcodes] : kHeavy) {
    std::string opcode = wordsOf(opcodes)[0];
    if (heavy != from.heavy && hlotag::hlo::mayBe(from, Kind(opcode)))
      all.append(all.empty() ? "" : " ").append(opcode);
  }
  return all;
}

} // namespace

TEST(opcodes_of_operations) {
  const std::map<std::string_view, std::string_view> renamed = {
      {"chlo.erf", ""},
      {"sdy.manual_computation", "call"},
      {"stablehlo.all_reduce", "all-reduce"},
      {"stablehlo.bitcast_convert", "bitcast-convert"},
      {"stablehlo.broadcast_in_dim", "broadcast"},
      {"stablehlo.case", "conditional"},
      {"stablehlo.composite", ""},
      {"stablehlo.custom_call", ""},
      {"stablehlo.dot_general", "dot"},
      {"stablehlo.dynamic_broadcast_in_dim", "broadcast"},
      {"stablehlo.dynamic_conv", "convolution"},
      {"stablehlo.dynamic_gather", "gather"},
      {"stablehlo.dynamic_iota", "iota"},
      {"stablehlo.dynamic_pad", "pad"},
      {"stablehlo.dynamic_reshape", "reshape"},
      {"stablehlo.if", "conditional"},
      {"stablehlo.optimization_barrier", "opt-barrier"},
      {"stablehlo.ragged_dot", "dot"},
      {"stablehlo.real_dynamic_slice", "slice"},
      {"stablehlo.reduce_window", "reduce-window"},
  };
  for (auto [operation, opcode] : renamed)
    CHECK_EQ(Kind(operation).becomes, opcode);
}

TEST(opcodes_have_a_cost) {
  checkCosts(Cost::Glue,
             "add-dependency after-all async-done async-start async-update bitcast call constant "
             "copy copy-done copy-start domain fusion get-tuple-element opt-barrier parameter "
             "partition-id replica-id tuple");
  checkCosts(Cost::Layout, "broadcast concatenate dynamic-slice dynamic-update-slice iota pad "
                           "reshape reverse slice transpose");
  checkCosts(Cost::Pointwise, "add bitcast-convert convert tanh slice-done");
  for (const auto &[heavy, opcodes] : kHeavy)
    for (const std::string &opcode : wordsOf(opcodes)) {
      CHECK(Kind(opcode).heavy == heavy);
      CHECK(Kind(opcode).cost == Cost::Heavy);
      CHECK_EQ(Kind(opcode).isHeavy(), opcode != "custom-call");
      CHECK(Kind(opcode + "-start").heavy == heavy);
    }
}

TEST(opcodes_have_facts) {
  CHECK_EQ(opcodesWith(kMoves),
           "bitcast bitcast-convert broadcast concatenate convert copy get-tuple-element iota "
           "opt-barrier pad reshape reverse slice transpose tuple");
  CHECK_EQ(opcodesWith(kRelabels), "bitcast-convert broadcast reshape transpose");
  CHECK_EQ(opcodesWith(kReshapes), "bitcast copy reshape transpose");
  CHECK_EQ(opcodesWith(kXlasOwn),
           "bitcast copy get-tuple-element parameter partition-id replica-id tuple");
  CHECK_EQ(opcodesWith(kCopies), "bitcast copy");
  CHECK_EQ(opcodesWith(kSlices), "dynamic-slice slice");
  CHECK_EQ(opcodesWith(kCommutes), "add and maximum minimum multiply or xor");
  CHECK_EQ(opcodesWith(kCollective),
           "all-gather all-reduce all-to-all collective-broadcast collective-permute "
           "ragged-all-to-all reduce-scatter");
  CHECK_EQ(opcodesWith(kCombines), "all-gather all-reduce collective-broadcast collective-permute "
                                   "reduce-scatter");
  CHECK_EQ(opcodesWith(kRunsOthers), "call conditional fusion while");
  CHECK_EQ(opcodesWith(kWraps), "async-start async-update fusion");
  CHECK_EQ(opcodesWith(kDone), "async-update");
  CHECK(Kind("all-reduce-start").is(kCombines));
  CHECK(!Kind("all-reduce-done").is(kCombines));
  CHECK(Kind("all-reduce-done").is(kWraps));
}

TEST(opcodes_of_heavy_operations_after_a_rewrite) {
  CHECK_EQ(rewritesOf("all_reduce"), "reduce-scatter");
  CHECK_EQ(rewritesOf("convolution"), "all-reduce custom-call reduce reduce-scatter");
  CHECK_EQ(rewritesOf("fft"), "custom-call");
  CHECK_EQ(rewritesOf("gather"), "convolution while");
  CHECK_EQ(rewritesOf("cholesky"), "convolution custom-call while");
  CHECK_EQ(rewritesOf("reduce"), "all-reduce convolution custom-call reduce-scatter");
  CHECK_EQ(rewritesOf("reduce_scatter"), "all-reduce");
  CHECK_EQ(rewritesOf("rng"), "custom-call while");
  CHECK_EQ(rewritesOf("scatter"), "all-reduce custom-call reduce reduce-scatter sort while");
  CHECK_EQ(rewritesOf("sort"), "custom-call");
  CHECK_EQ(rewritesOf("while"), "");
}

TEST(opcodes_that_operations_become) {
  CHECK(mayBe("stablehlo.dot_general", "convolution"));
  CHECK(mayBe("stablehlo.convolution", "custom-call"));
  CHECK(mayBe("stablehlo.all_reduce", "reduce-scatter"));
  CHECK(!mayBe("stablehlo.sort", "dot"));
  CHECK(!mayBe("stablehlo.tanh", "dot"));
  CHECK(mayBe("stablehlo.divide", "multiply"));
  CHECK(mayBe("stablehlo.gather", "dynamic-slice"));
  CHECK(!mayBe("stablehlo.sort", "dynamic-slice"));
  CHECK(mayBe("stablehlo.transpose", "bitcast"));
  CHECK(mayBe("stablehlo.bitcast_convert", "bitcast"));
  CHECK(!mayBe("stablehlo.tanh", "copy"));
  CHECK(mayBe("stablehlo.broadcast_in_dim", "iota"));
  CHECK(mayBe("stablehlo.iota", "iota"));
  CHECK(mayBe("stablehlo.optimization_barrier", "opt-barrier"));
  CHECK(!mayBe("stablehlo.reshape", "iota"));
  CHECK(mayBe("chlo.top_k", "sort"));
  CHECK(!mayBe("chlo.top_k", "while"));
}

TEST(opcodes_roles) {
  CHECK(isA("stablehlo.tanh", "tanh", Role::Computes));
  CHECK(isA("stablehlo.convert", "convert", Role::Computes));
  CHECK(isA("stablehlo.scatter", "scatter", Role::Computes));
  CHECK(isA("stablehlo.scatter", "dynamic-update-slice", Role::Computes));
  CHECK(isA("stablehlo.fft", "custom-call", Role::Computes));
  CHECK(isA("stablehlo.custom_call", "custom-call", Role::Computes));
  CHECK(isA("stablehlo.custom_call", "sort", Role::Part));
  CHECK(isA("stablehlo.all_gather", "all-gather-start", Role::Computes));
  CHECK(isA("stablehlo.all_gather", "all-gather-done", Role::Carries));
  CHECK(isA("func.call", "async-start", Role::Computes));
  CHECK(isA("func.call", "async-done", Role::Carries));
  CHECK(isA("stablehlo.subtract", "add", Role::Computes));
  CHECK(isA("stablehlo.reshape", "copy", Role::Computes));
  CHECK(isA("stablehlo.tanh", "add", Role::Part));
  CHECK(isA("stablehlo.dot_general", "convert", Role::Carries));
  CHECK(isA("stablehlo.dot_general", "transpose", Role::Carries));
  CHECK(isA("stablehlo.dot_general", "reduce", Role::Part));
  CHECK(isA("stablehlo.select_and_scatter", "scatter", Role::Part));
  CHECK(!replaces(Kind("stablehlo.dot_general"), Kind("reduce")));
  CHECK(replaces(Kind("stablehlo.reduce"), Kind("dot")));
  CHECK(replaces(Kind("stablehlo.tanh"), Kind("add")));
}
