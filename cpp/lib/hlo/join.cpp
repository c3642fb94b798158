// SPDX-License-Identifier: Apache-2.0
#include "hlotag/hlo/join.h"

#include "join_rules.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace hlotag::hlo {

namespace {

using Step = JoinRule::Step;

void runRules(Join &join, Step step, size_t i) {
  for (const JoinRule &rule : joinRules()) {
    if (rule.step != step || rule.name == join.without)
      continue;
    if (Numbers found = rule.find(join, i); !found.empty()) {
      join.facts[i].ids = std::move(found);
      return;
    }
  }
}

/// How much an instruction does, compared to others: products most, then all other heavy work, by
/// size of the result.
std::pair<int, uint64_t> weigh(const Module &module, size_t i) {
  const Kind &kind = module.kind(i);
  return {kind.isHeavy() + (kind.heavy == Heavy::Contraction), numElements(module.dimensions(i))};
}

} // namespace

void setCallsApart(NumberedName &named, const Program &program) {
  for (const Numbers *numbers : {&named.numbers, &named.callers})
    for (int64_t number : *numbers)
      if (size_t(number) >= program.operations.size())
        throw std::invalid_argument("the module names operation " + std::to_string(number) +
                                    ", but the program has " +
                                    std::to_string(program.operations.size()) + " operations");
  auto isCall = [&](int64_t number) {
    return program.kinds[program.operations[size_t(number)].kind].name == "func.call";
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

std::vector<size_t> findHeaviest(const Module &module) {
  std::vector<size_t> heaviest(module.instructions.size());
  std::vector<size_t> order = module.usersFirst();
  std::vector<std::optional<size_t>> inBody(module.computations.size());
  // Callees come before callers, and operands before users.
  for (auto i = order.rbegin(); i != order.rend(); ++i) {
    const Module::Instruction &instruction = module.instructions[*i];
    const Kind &kind = module.kind(*i);
    bool isDone = kind.is(kDone) && !instruction.operands.empty();
    heaviest[*i] = isDone ? heaviest[instruction.operands[0]] : *i;
    if (kind.is(kFusion) || kind.is(kAsyncStart))
      heaviest[*i] = inBody[elementAt(instruction.called, 0)].value_or(*i);
    if (!module.kind(heaviest[*i]).isHeavy())
      continue;
    std::optional<size_t> &found = inBody[instruction.computation];
    if (!found || weigh(module, heaviest[*i]) > weigh(module, *found))
      found = heaviest[*i];
  }
  return heaviest;
}

std::vector<Numbers> join(const Module &module, const Program &program,
                          const std::vector<NumberedName> &names, std::string_view without) {
  Join join(module, program, names, findHeaviest(module));
  join.without = without;
  Facts &facts = join.facts;
  for (size_t i : facts.order) {
    runRules(join, Step::Name, i);
    facts[i].isUnsure = isUnsure(facts, i);
  }
  join.uses.find();
  for (size_t i : facts.order)
    if (facts[i].isUnsure) {
      join.uses.follow(i);
      runRules(join, Step::Flow, i);
    }
  for (size_t i : facts.order)
    runRules(join, Step::Computed, i);
  std::vector<Numbers> ids(facts.order.size());
  for (size_t i = 0; i < ids.size(); ++i)
    ids[i] = std::move(facts[i].ids);
  return ids;
}

std::vector<std::string_view> joinRuleNames() {
  std::vector<std::string_view> names;
  for (const JoinRule &rule : joinRules())
    names.push_back(rule.name);
  names.push_back(kEqual);
  return names;
}

void addEqual(std::vector<Numbers> &ids, const Program &program) {
  std::vector<bool> isPresent(program.operations.size());
  for (const Numbers &numbers : ids)
    for (int64_t number : numbers)
      isPresent[size_t(number)] = true;
  std::vector<Numbers> gone(program.operations.size()); // By value.
  for (size_t number = 0; number < isPresent.size(); ++number)
    if (!isPresent[number])
      gone[program.operations[number].value].push_back(int64_t(number));
  for (Numbers &numbers : ids) {
    if (numbers.empty())
      continue;
    // Only the first one: with as many copies as operations, all would be a square.
    Numbers equal = std::exchange(gone[program.operations[size_t(numbers[0])].value], {});
    numbers.insert(numbers.end(), equal.begin(), equal.end());
  }
}

} // namespace hlotag::hlo
