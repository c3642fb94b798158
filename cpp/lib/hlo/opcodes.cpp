// SPDX-License-Identifier: Apache-2.0
#include "hlotag/hlo/opcodes.h"

#include "hlotag/ir/support.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>

namespace hlotag::hlo {

namespace {

constexpr Cost Glue = Cost::Glue, Layout = Cost::Layout, Pointwise = Cost::Pointwise;
constexpr unsigned kCombined = kCollective | kCombines;

struct Row {
  constexpr Row(std::string_view opcode, Cost cost, unsigned facts = 0)
      : opcode(opcode), cost(cost), heavy(Heavy::None), facts(facts) {}
  constexpr Row(std::string_view opcode, Heavy heavy, unsigned facts = 0)
      : opcode(opcode), cost(Cost::Heavy), heavy(heavy), facts(facts) {}

  std::string_view opcode;
  Cost cost;
  Heavy heavy;
  unsigned facts;
};

/// Other opcodes are pointwise.
constexpr Row kOpcodes[] = {
    {"add", Pointwise, kCommutes},
    {"add-dependency", Glue},
    {"after-all", Glue},
    {"all-gather", Heavy::AllGather, kCombined},
    {"all-reduce", Heavy::AllReduce, kCombined},
    {"all-to-all", Heavy::AllToAll, kCollective},
    {"and", Pointwise, kCommutes},
    {"async-done", Glue},
    {"async-start", Glue, kAsyncStart | kWraps},
    {"async-update", Glue, kDone | kWraps},
    {"bitcast", Glue, kMoves | kXlasOwn | kReshapes | kCopies},
    {"bitcast-convert", Pointwise, kMoves | kRelabels},
    {"broadcast", Layout, kMoves | kRelabels},
    {"call", Glue, kCall | kRunsOthers},
    {"cholesky", Heavy::LinearAlgebra},
    {"collective-broadcast", Heavy::CollectiveBroadcast, kCombined},
    {"collective-permute", Heavy::CollectivePermute, kCombined},
    {"concatenate", Layout, kMoves},
    {"conditional", Heavy::Conditional, kRunsOthers},
    {"constant", Glue, kConstant},
    {"convert", Pointwise, kMoves},
    {"convolution", Heavy::Contraction},
    {"copy", Glue, kMoves | kXlasOwn | kReshapes | kCopies},
    {"copy-done", Glue},
    {"copy-start", Glue},
    {"custom-call", Heavy::CustomCall},
    {"domain", Glue},
    {"dot", Heavy::Contraction},
    {"dynamic-slice", Layout, kSlices},
    {"dynamic-update-slice", Layout},
    {"fft", Heavy::Fft},
    {"fusion", Glue, kFusion | kRunsOthers | kWraps},
    {"gather", Heavy::Gather},
    {"get-tuple-element", Glue, kElement | kMoves | kXlasOwn},
    {"infeed", Heavy::Infeed},
    {"iota", Layout, kMoves},
    {"maximum", Pointwise, kCommutes},
    {"minimum", Pointwise, kCommutes},
    {"multiply", Pointwise, kCommutes},
    {"opt-barrier", Glue, kMoves},
    {"or", Pointwise, kCommutes},
    {"outfeed", Heavy::Outfeed},
    {"pad", Layout, kMoves},
    {"parameter", Glue, kParameter | kXlasOwn},
    {"partition-id", Glue, kXlasOwn},
    {"ragged-all-to-all", Heavy::AllToAll, kCollective},
    {"recv", Heavy::Recv},
    {"reduce", Heavy::Reduce},
    {"reduce-scatter", Heavy::ReduceScatter, kCombined},
    {"reduce-window", Heavy::Reduce},
    {"replica-id", Glue, kXlasOwn},
    {"reshape", Layout, kMoves | kRelabels | kReshapes},
    {"reverse", Layout, kMoves},
    {"rng", Heavy::Rng},
    {"rng-bit-generator", Heavy::Rng},
    {"scatter", Heavy::Scatter},
    {"select-and-scatter", Heavy::Scatter},
    {"send", Heavy::Send},
    {"slice", Layout, kMoves | kSlices},
    {"sort", Heavy::Sort},
    {"topk", Heavy::Sort},
    {"transpose", Layout, kMoves | kRelabels | kReshapes},
    {"triangular-solve", Heavy::LinearAlgebra},
    {"tuple", Glue, kTuple | kMoves | kXlasOwn},
    {"while", Heavy::While, kLoop | kRunsOthers},
    {"xor", Pointwise, kCommutes},
};

struct Renaming {
  std::string_view operation, opcode;
};

/// From StableHLO's names to HLO's, where they differ by more than dashes.
constexpr Renaming kRenamed[] = {
    {"bitcast_convert", "bitcast-convert"},
    {"broadcast_in_dim", "broadcast"},
    {"case", "conditional"},
    {"dot_general", "dot"},
    {"dynamic_broadcast_in_dim", "broadcast"},
    {"dynamic_conv", "convolution"},
    {"dynamic_gather", "gather"},
    {"dynamic_iota", "iota"},
    {"dynamic_pad", "pad"},
    {"dynamic_reshape", "reshape"},
    {"if", "conditional"},
    {"manual_computation", "call"},
    {"optimization_barrier", "opt-barrier"},
    {"ragged_dot", "dot"},
    {"real_dynamic_slice", "slice"},
};

/// Opaque: may become any instruction but a loop or a branch, which XLA also makes for reasons of
/// its own.
constexpr std::string_view kOpaque[] = {"composite", "custom-call", "custom_call"};

struct Rewrite {
  Heavy from;
  std::initializer_list<Heavy> to;
};

/// What else than itself a heavy operation may become.
const Rewrite kRewrites[] = {
    {Heavy::AllReduce, {Heavy::ReduceScatter}},
    // If XLA's partitioner splits the reduced dimension, collectives add the parts.
    {Heavy::Contraction,
     {Heavy::Reduce, Heavy::CustomCall, Heavy::AllReduce, Heavy::ReduceScatter}},
    {Heavy::Fft, {Heavy::CustomCall}},
    {Heavy::Gather, {Heavy::While, Heavy::Contraction}},
    {Heavy::LinearAlgebra, {Heavy::While, Heavy::CustomCall, Heavy::Contraction}},
    {Heavy::Reduce,
     {Heavy::AllReduce, Heavy::ReduceScatter, Heavy::Contraction, Heavy::CustomCall}},
    {Heavy::ReduceScatter, {Heavy::AllReduce}},
    {Heavy::Rng, {Heavy::While, Heavy::CustomCall}},
    {Heavy::Scatter,
     {Heavy::While, Heavy::Reduce, Heavy::Sort, Heavy::CustomCall, Heavy::AllReduce,
      Heavy::ReduceScatter}},
    {Heavy::Sort, {Heavy::CustomCall}},
};

template <class Range, class T> bool contains(const Range &range, const T &element) {
  return std::find(std::begin(range), std::end(range), element) != std::end(range);
}

bool isRewrite(Heavy from, Heavy to) {
  auto isOfFrom = [&](const Rewrite &rewrite) { return rewrite.from == from; };
  auto found = std::find_if(std::begin(kRewrites), std::end(kRewrites), isOfFrom);
  return from == to || (found != std::end(kRewrites) && contains(found->to, to));
}

/// The opcode of an asynchronous pair: `all-gather` of `all-gather-start` and `all-gather-done`.
std::string_view baseOf(std::string_view opcode) {
  for (std::string_view end : {"-start", "-done"})
    if (ir::endsWith(opcode, end))
      opcode.remove_suffix(end.size());
  return opcode;
}

const Row *findRow(std::string_view opcode) {
  auto isNamed = [](std::string_view name) {
    return [=](const Row &row) { return row.opcode == name; };
  };
  auto found = std::find_if(std::begin(kOpcodes), std::end(kOpcodes), isNamed(opcode));
  if (found != std::end(kOpcodes))
    return found;
  found = std::find_if(std::begin(kOpcodes), std::end(kOpcodes), isNamed(baseOf(opcode)));
  return found != std::end(kOpcodes) && found->cost == Cost::Heavy ? found : nullptr;
}

std::string opcodeOf(std::string_view name) {
  size_t dot = name.rfind('.');
  std::string base(name.substr(dot + 1)); // all of it if there is no dot
  for (auto [operation, opcode] : kRenamed)
    if (dot != name.npos && base == operation)
      return std::string(opcode);
  if (contains(kOpaque, base) || name.substr(0, dot) == "chlo")
    return {};
  std::replace(base.begin(), base.end(), '_', '-');
  return base;
}

/// Returns whether `to` is what XLA makes of `from` if that takes or writes a single place.
bool isOfOnePlace(const Kind &from, const Kind &to) {
  return (from.becomes == "gather" && to.becomes == "dynamic-slice") ||
         (from.becomes == "scatter" && to.becomes == "dynamic-update-slice");
}

/// Returns whether XLA rewrites `from` to `to` if an operand is constant: `x - 1` is `x + -1`.
bool isOfConstant(const Kind &from, const Kind &to) {
  return (from.becomes == "subtract" && to.becomes == "add") ||
         (from.becomes == "divide" && to.becomes == "multiply");
}

bool isHeavy(const Kind &kind) { return kind.cost == Cost::Heavy; }
} // namespace

Kind::Kind(std::string_view name) : name(name), becomes(opcodeOf(name)) {
  std::string_view opcode = name.find('.') == name.npos ? name : std::string_view(becomes);
  if (const Row *row = findRow(opcode)) {
    cost = row->cost;
    heavy = row->heavy;
    facts = row->facts;
  }
  if (ir::endsWith(opcode, "-done"))
    facts = (facts & ~kCombines) | kDone | kWraps;
}

bool mayBe(const Kind &operation, const Kind &instruction) {
  if (isSame(operation, instruction))
    return true;
  if (instruction.is(kCopies))
    return operation.is(kRelabels);
  if (instruction.cost == Cost::Glue)
    return false;
  if (operation.becomes.empty())
    return !instruction.is(kRunsOthers);
  if (isHeavy(instruction))
    return isHeavy(operation) && isRewrite(operation.heavy, instruction.heavy);
  if (instruction.cost == Cost::Pointwise)
    return operation.cost >= Cost::Pointwise;
  // Among operations that move elements, only a broadcast may become an iota with its own name.
  bool isMoved = operation.cost == Cost::Layout &&
                 (instruction.name != "iota" || operation.becomes == "broadcast");
  return isMoved || isOfOnePlace(operation, instruction);
}

Role roleOf(const Kind &operation, const Kind &instruction) {
  bool isStart = ir::endsWith(instruction.name, "-start");
  if (isSame(operation, instruction) || (isStart && baseOf(instruction.name) == operation.becomes))
    return Role::Computes;
  if (operation.becomes == "call" && instruction.is(kAsyncStart)) // A call that is kept.
    return Role::Computes;
  if (instruction.is(kCopies) && operation.is(kRelabels))
    return Role::Computes;
  if (instruction.cost == Cost::Glue || instruction.is(kDone) || instruction.name == "convert")
    return Role::Carries;
  bool isOpaque = operation.becomes.empty();
  if (instruction.cost == Cost::Layout)
    return operation.cost == Cost::Layout || isOfOnePlace(operation, instruction) ? Role::Computes
                                                                                  : Role::Carries;
  if (instruction.cost == Cost::Pointwise)
    return isOfConstant(operation, instruction) ? Role::Computes : Role::Part;
  bool isCall = instruction.heavy == Heavy::CustomCall;
  bool isWhole =
      isOpaque ? isCall : isHeavy(operation) && (isCall || instruction.heavy == operation.heavy);
  return isWhole && instruction.heavy != Heavy::Scatter ? Role::Computes : Role::Part;
}

bool replaces(const Kind &operation, const Kind &instruction) {
  if (!isHeavy(operation))
    return true;
  return operation.heavy != Heavy::Contraction && isHeavy(instruction) &&
         isRewrite(operation.heavy, instruction.heavy);
}

std::vector<std::string_view> opcodesThat(OpcodeFact fact) {
  std::vector<std::string_view> found;
  for (const Row &row : kOpcodes)
    if (row.facts & fact)
      found.push_back(row.opcode);
  return found;
}

} // namespace hlotag::hlo
