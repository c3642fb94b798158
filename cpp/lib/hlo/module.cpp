// SPDX-License-Identifier: Apache-2.0
#include "hlotag/hlo/module.h"

#include "fields.h"

#include <algorithm>
#include <utility>

namespace hlotag::hlo {

constexpr int kMaxNestedTuples = 1000; // bounds the recursion for malformed modules

/// Returns the index for an id. Throws ModuleError if there is none.
static size_t at(const ir::FlatMap<uint64_t, size_t> &byId, int64_t id) {
  const size_t *found = byId.find(uint64_t(id));
  if (!found)
    throw wire::ModuleError("an instruction refers to an id that the module lacks");
  return *found;
}

Numbers dimensionsOf(std::string_view shape) {
  return wire::numbersIn(shape, fields::shape::kDimensions);
}

Module::Module(std::string_view data) {
  int64_t entryId = 0;
  for (wire::Message message(data); message.next();) {
    if (message.field() == fields::module::kComputations)
      readComputation(message.bytes());
    else if (message.field() == fields::module::kEntryId)
      entryId = message.number();
    else if (message.field() == fields::module::kName)
      name = message.bytes();
    else if (message.field() == fields::module::kStackFrames)
      stackFrames = message.bytes();
    else if (message.field() == fields::module::kPayloads)
      payloads_.push_back(message.bytes());
  }
  entry = at(byId_, entryId);
  findCallers();
}

void Module::readComputation(std::string_view data) {
  using namespace fields::computation;
  Computation made{{}, {}, 0, instructions.size(), 0, 0, {}};
  int64_t root = 0;
  ById byId;
  for (wire::Message field(data); field.next();) {
    if (field.field() == kInstructions)
      readInstruction(field.bytes(), byId);
    else if (field.field() == kName)
      made.name = field.bytes();
    else if (field.field() == kThread)
      made.thread = field.bytes();
    else if (field.field() == kId)
      made.id = field.number();
    else if (field.field() == kRootId)
      root = field.number();
  }
  made.end = instructions.size();
  made.root = at(byId, root);
  *byId_.insert(uint64_t(made.id)).first = computations.size();
  computations.push_back(made);
}

void Module::readInstruction(std::string_view data, ById &byId) {
  using namespace fields::instruction;
  Instruction made;
  made.message = data;
  made.computation = computations.size();
  std::string_view opcode;
  Numbers operands, called;
  for (wire::Message field(data); field.next();) {
    int number = field.field();
    if (number == kName)
      made.name = field.bytes();
    else if (number == kOpcode)
      opcode = field.bytes();
    else if (number == kShape)
      made.shape = field.bytes();
    else if (number == kMetadata)
      made.metadata = field.bytes();
    else if (number == kFrontendAttributes)
      made.attributes = field.bytes();
    else if (number == kParameterNumber || number == kTupleIndex)
      made.index = size_t(field.number());
    else if (number == kChannelId)
      made.channel = field.number();
    else if (number == kId)
      made.id = field.number();
    else if (number == kOperandIds)
      field.appendNumbers(operands);
    else if (number == kCalledIds)
      field.appendNumbers(called);
  }
  made.opName = wire::bytesIn(made.metadata, fields::metadata::kOpName);
  made.opcode = numberOf(opcode);
  // Operands come before their users, and computations before their callers.
  made.operands.reserve(operands.size());
  for (int64_t operand : operands)
    made.operands.push_back(at(byId, operand));
  for (int64_t computation : called)
    made.called.push_back(at(byId_, computation));
  *byId.insert(uint64_t(made.id)).first = instructions.size();
  instructions.push_back(std::move(made));
}

size_t Module::numberOf(std::string_view opcode) {
  auto [known, isNew] = opcodes_.try_emplace(opcode, kinds_.size());
  if (isNew)
    kinds_.emplace_back(opcode);
  return known->second;
}

void Module::findCallers() {
  std::vector<int> numCalls(computations.size());
  for (size_t i = 0; i < instructions.size(); ++i) {
    const Kind &kind = this->kind(i);
    if ((kind.is(kFusion) || kind.is(kCall) || kind.is(kAsyncStart)) &&
        instructions[i].called.empty())
      throw wire::ModuleError("a call has no callee");
    if (kind.is(kDone)) // it calls the computation of its start
      continue;
    bool isFollowed = kind.is(kFusion) || kind.is(kCall) || kind.is(kLoop) || kind.is(kAsyncStart);
    for (size_t callee : instructions[i].called)
      computations[callee].caller =
          ++numCalls[callee] == 1 && isFollowed ? std::optional(i) : std::nullopt;
  }
}

Entries Module::attributes(size_t instruction) const {
  Entries entries;
  for (wire::Message map(instructions[instruction].attributes); map.next();)
    if (map.field() == fields::attributes::kMap)
      entries[std::string(wire::bytesIn(map.bytes(), fields::entry::kKey))] =
          wire::bytesIn(map.bytes(), fields::entry::kValue);
  return entries;
}

std::optional<std::string_view> Module::payload(size_t instruction) const {
  std::optional<std::string_view> payload;
  for (wire::Message field(instructions[instruction].metadata); field.next();)
    if (field.field() == fields::metadata::kPayload)
      payload = field.bytes();
  if (!payload)
    return std::nullopt;
  std::string_view text = wire::bytesIn(*payload, fields::payload::kText);
  auto index = uint64_t(wire::numberIn(*payload, fields::payload::kIndex, 0));
  return text.empty() && index < payloads_.size() ? payloads_[index] : text;
}

size_t Module::findSource(size_t instruction, int depth) const {
  if (depth == kMaxNestedTuples)
    throw wire::ModuleError("tuples are nested too deep");
  sources_.resize(instructions.size(), kUnknown);
  std::vector<size_t> path;
  size_t source = sources_[instruction];
  while (source == kUnknown) {
    path.push_back(instruction);
    size_t next = followSource(instruction, depth);
    source = next == instruction ? next : sources_[next];
    instruction = next;
  }
  for (size_t passed : path)
    sources_[passed] = source;
  return source;
}

/// Returns the instruction whose value `instruction` passes on; itself if it computes the value.
size_t Module::followSource(size_t instruction, int depth) const {
  const Instruction &at = instructions[instruction];
  const Kind &kind = this->kind(instruction);
  std::optional<size_t> caller = computations[at.computation].caller;
  if (kind.is(kParameter) && caller && !this->kind(*caller).is(kLoop))
    return elementAt(instructions[*caller].operands, at.index);
  if (kind.is(kFusion) || kind.is(kCall))
    return computations[at.called[0]].root;
  if (kind.is(kDone)) {
    size_t start = elementAt(at.operands, 0);
    return this->kind(start).is(kAsyncStart) ? computations[instructions[start].called[0]].root
                                             : start;
  }
  if (!kind.is(kElement))
    return instruction;
  size_t made = findSource(elementAt(at.operands, 0), depth + 1);
  return elementOf(made, at.index, depth).value_or(instruction);
}

size_t Module::findWrapped(size_t instruction) const {
  if (!kind(instruction).is(kWraps))
    return instruction;
  bool isStart = kind(instruction).is(kAsyncStart);
  return findSource(isStart ? computations[instructions[instruction].called[0]].root : instruction);
}

/// Returns the instruction that computes an element of a tuple. If the tuple is the state of a loop
/// whose body does not change the element, returns that of the initial value.
std::optional<size_t> Module::elementOf(size_t made, size_t index, int depth) const {
  const Instruction &tuple = instructions[made];
  if (kind(made).is(kTuple))
    return elementAt(tuple.operands, index);
  std::optional<size_t> loop = computations[tuple.computation].caller;
  if (!kind(made).is(kParameter) || !loop || !kind(*loop).is(kLoop))
    return std::nullopt;
  const Computation &body = computations[instructions[*loop].called[0]];
  if (!kind(body.root).is(kTuple))
    return std::nullopt;
  size_t next = elementAt(instructions[body.root].operands, index);
  if (!kind(next).is(kElement) || instructions[next].index != index ||
      !kind(elementAt(instructions[next].operands, 0)).is(kParameter))
    return std::nullopt;
  size_t start = findSource(elementAt(instructions[*loop].operands, 0), depth + 1);
  return kind(start).is(kTuple) ? std::optional(elementAt(instructions[start].operands, index))
                                : std::nullopt;
}

std::vector<size_t> Module::results() const {
  size_t root = computations[entry].root;
  std::vector<size_t> results =
      kind(root).is(kTuple) ? instructions[root].operands : std::vector{root};
  for (size_t &result : results)
    result = findSource(result);
  return results;
}

std::vector<size_t> Module::usersFirst() const {
  std::vector<size_t> order;
  std::vector<std::pair<size_t, size_t>> pending; // computation, number of instructions done
  for (size_t c = computations.size(); c-- > 0;) {
    if (computations[c].caller)
      continue;
    pending.emplace_back(c, computations[c].end);
    while (!pending.empty()) {
      auto &[computation, next] = pending.back();
      if (next == computations[computation].begin) {
        pending.pop_back();
        continue;
      }
      size_t i = --next;
      order.push_back(i);
      for (size_t callee : instructions[i].called)
        if (computations[callee].caller == i)
          pending.emplace_back(callee, computations[callee].end);
    }
  }
  return order;
}

std::vector<int64_t> findFusions(const Module &module) {
  std::vector<int64_t> fusions(module.computations.size(), kNone);
  for (size_t c = fusions.size(); c-- > 0;) // Callers come after their callees.
    for (size_t i = module.computations[c].begin; i < module.computations[c].end; ++i)
      if (fusions[c] != kNone || module.kind(i).is(kFusion))
        for (size_t callee : module.instructions[i].called)
          fusions[callee] = fusions[c] != kNone ? fusions[c] : int64_t(i);
  return fusions;
}

std::vector<bool> findApplied(const Module &module) {
  std::vector<bool> isApplied(module.computations.size());
  for (size_t c = isApplied.size(); c-- > 0;) // Callers come after their callees.
    for (size_t i = module.computations[c].begin; i < module.computations[c].end; ++i) {
      const Kind &kind = module.kind(i);
      bool runs = kind.is(kRunsOthers) || kind.is(kAsyncStart) || kind.is(kDone);
      for (size_t callee : module.instructions[i].called)
        isApplied[callee] = isApplied[callee] || isApplied[c] || !runs;
    }
  return isApplied;
}

} // namespace hlotag::hlo
