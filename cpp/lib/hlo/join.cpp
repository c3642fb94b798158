// SPDX-License-Identifier: Apache-2.0
#include "hlotag/hlo/join.h"

#include "bodies.h"
#include "collectives.h"
#include "facts.h"
#include "moves.h"
#include "naming.h"
#include "products.h"
#include "uses.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

namespace hlotag::hlo {

namespace {

/// Returns the operations that XLA expanded to a loop, if an instruction is the result of its body.
Ids expanded(const Facts &facts, size_t i) {
  const Module &module = facts.module;
  const Module::Computation &computation = module.computations[module.instructions[i].computation];
  if (computation.root != i || !computation.caller)
    return {};
  size_t loop = *computation.caller;
  const Ids &ids = facts[loop].ids;
  bool isExpansion = facts.kind(loop).isLoop && !ids.empty() &&
                     facts.operations.kind(ids[0]).opcode != facts.opcode(loop);
  return isExpansion ? ids : Ids();
}

/// Returns the operations that become an instruction: among those in its name, else among those
/// that its users expect.
Ids sources(Facts &facts, size_t i) {
  const Fact &fact = facts[i];
  for (const Ids *numbers : {&fact.ids, &fact.wanted, &fact.swapped}) {
    Ids found;
    facts.unique.start();
    for (int64_t number : *numbers)
      if (int64_t source = facts.operations.source(number, facts.opcode(i)); source != kNone)
        facts.unique.add(found, source);
    // XLA reorders operands when it writes a contraction as a product.
    if (Ids fitting = facts.operations.ofSize(found, facts.size(i)); !fitting.empty())
      return fitting;
    if (!found.empty())
      return found;
  }
  return {};
}

/// Returns the operands of the named operation that became a heavy instruction, and the named one,
/// which XLA folded into it: the sum of two scatters becomes one scatter.
Ids absorbed(Facts &facts, size_t i) {
  const Operations &operations = facts.operations;
  const Kinds::Kind &kind = facts.kind(i);
  const Ids &named = facts[i].ids;
  if (!kind.isHeavy || named.empty() || operations.kind(named[0]).isHeavy)
    return {};
  Ids ids;
  facts.unique.start();
  for (int64_t operand : operations.operands(named[0])) {
    int64_t source = facts.operations.source(operand, facts.opcode(i));
    if (source != kNone && operations.kind(source).heavy == kind.heavy &&
        operations.numElements(source) == facts.size(i))
      facts.unique.add(ids, source);
  }
  if (!ids.empty())
    for (int64_t number : named)
      facts.unique.add(ids, number);
  return ids;
}

/// Returns the operations of the users of an instruction without a name.
Ids owner(const Facts &facts, size_t i) {
  const Kinds::Kind &kind = facts.kind(i);
  // XLA inserts constants and copies for itself. A heavy instruction has one owner, or is unknown.
  bool isUnowned = kind.isXlasOwn || (kind.isHeavy && facts[i].owners.size() > 1);
  return isUnowned ? Ids() : facts[i].owners;
}

Ids byFlow(Facts &facts, size_t i) {
  Fact &fact = facts[i];
  if (!fact.ids.empty() && facts.kind(i).isMove)
    return moved(facts, i);
  if (Ids ids = sources(facts, i); !ids.empty())
    return ids;
  if (Ids ids = absorbed(facts, i); !ids.empty())
    return ids;
  if (!fact.ids.empty())
    return fact.ids;
  fact.isHelper = true;
  return owner(facts, i);
}

/// Joins an unsure instruction.
void joinByFlow(Facts &facts, Uses &uses, size_t i) {
  Fact &fact = facts[i];
  uses.follow(i);
  if (fact.owners.empty())
    fact.owners = expanded(facts, i);
  std::sort(fact.owners.begin(), fact.owners.end());
  bool isCollective = isCombined(facts, i) || (fact.ids.empty() && facts.kind(i).isCombinable);
  Ids ids = isCollective ? combined(facts, uses, i) : Ids();
  fact.ids = ids.empty() ? byFlow(facts, i) : std::move(ids);
  findPart(facts, i);
}

/// By opcode and channel, the operations of a nameless collective.
using Channels = std::map<std::pair<size_t, int64_t>, Ids>;

/// TPU's compiler splits a collective into pieces in several fusions, with one channel. All come
/// from the operations of the last piece, whose users take the value.
void joinPiece(Facts &facts, Channels &channels, size_t i) {
  const Module::Instruction &instruction = facts.module.instructions[i];
  if (instruction.channel == 0 || !facts.names[i].numbers.empty() || !facts.kind(i).isCombinable)
    return;
  auto [last, isNew] =
      channels.try_emplace({instruction.opcode, instruction.channel}, facts[i].ids);
  if (!isNew)
    facts[i].ids = last->second;
}

} // namespace

void setCallsApart(NumberedName &named, const Program &program) {
  for (const Ids *numbers : {&named.numbers, &named.callers})
    for (int64_t number : *numbers)
      if (size_t(number) >= program.operations.size())
        throw std::invalid_argument("the module names operation " + std::to_string(number) +
                                    ", but the program has " +
                                    std::to_string(program.operations.size()) + " operations");
  auto isCall = [&](int64_t number) {
    return program.names[program.operations[size_t(number)].name] == "func.call";
  };
  std::copy_if(named.numbers.begin(), named.numbers.end(), std::back_inserter(named.callers),
               isCall);
  named.numbers.erase(std::remove_if(named.numbers.begin(), named.numbers.end(), isCall),
                      named.numbers.end());
}

std::vector<NumberedName> readNames(const Module &module, const Program &program) {
  std::vector<NumberedName> names;
  names.reserve(module.instructions.size());
  for (const Module::Instruction &instruction : module.instructions) {
    names.push_back(readNumbers(instruction.opName, program.token));
    setCallsApart(names.back(), program);
  }
  return names;
}

std::vector<Ids> join(const Module &module, Kinds &kinds, const Program &program,
                      const std::vector<NumberedName> &names) {
  Facts facts(module, kinds, program, names);
  readOperations(facts);
  Uses uses(facts);
  Channels channels;
  for (size_t i : facts.order)
    if (facts[i].isUnsure) {
      joinByFlow(facts, uses, i);
      joinPiece(facts, channels, i);
    }
  fillWrappers(facts);
  fillRegions(facts);
  adoptNameless(facts);
  std::vector<Ids> ids;
  ids.reserve(facts.order.size());
  for (size_t i = 0; i < facts.order.size(); ++i)
    ids.push_back(std::move(facts[i].ids));
  return ids;
}

void addEqual(std::vector<Ids> &ids, const Program &program) {
  std::vector<bool> isPresent(program.operations.size());
  for (const Ids &numbers : ids)
    for (int64_t number : numbers)
      isPresent[size_t(number)] = true;
  std::vector<Ids> gone(program.operations.size()); // By value.
  for (size_t number = 0; number < isPresent.size(); ++number)
    if (!isPresent[number])
      gone[program.operations[number].value].push_back(int64_t(number));
  for (Ids &numbers : ids) {
    if (numbers.empty())
      continue;
    const Ids &equal = gone[program.operations[size_t(numbers[0])].value];
    numbers.insert(numbers.end(), equal.begin(), equal.end());
  }
}

} // namespace hlotag::hlo
