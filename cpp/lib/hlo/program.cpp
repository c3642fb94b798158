// SPDX-License-Identifier: Apache-2.0
#include "hlotag/hlo/program.h"

#include "analysis/data_flow.h"
#include "hlotag/ir/op_ids.h"

#include <algorithm>

namespace hlotag::hlo {

namespace {

/// Numbers distinct handles, and makes one `Thing` for each.
template <class Thing, class Make> class Table {
public:
  Table(std::vector<Thing> &things, Make make) : things_(things), make_(make) {}
  template <class Handle> size_t operator[](Handle handle) {
    auto [index, isNew] = known_.insert(handle.opaque());
    if (isNew) {
      *index = things_.size();
      things_.push_back(make_(handle));
    }
    return *index;
  }

private:
  std::vector<Thing> &things_;
  Make make_;
  ir::PointerMap<size_t> known_;
};

Numbers firstDimensions(ir::Operation op) {
  Numbers sizes = op.results().empty() ? Numbers() : op.results()[0].shape();
  for (int64_t &size : sizes)
    size = std::max<int64_t>(size, -1); // Dynamic sizes are negative.
  return sizes;
}

int64_t numberOf(std::optional<size_t> op) { return op ? int64_t(*op) : kNone; }

Numbers numbersOf(const std::vector<analysis::DataFlow::Definition> &definitions) {
  Numbers numbers;
  numbers.reserve(definitions.size());
  for (const analysis::DataFlow::Definition &made : definitions)
    numbers.push_back(numberOf(made.op));
  return numbers;
}

/// Returns, for each operand, the argument of a function that it is, if it is one.
std::vector<Program::Argument>
argumentsOf(const std::vector<analysis::DataFlow::Definition> &definitions) {
  std::vector<Program::Argument> arguments;
  arguments.reserve(definitions.size());
  for (const analysis::DataFlow::Definition &made : definitions)
    arguments.push_back(
        made.function ? Program::Argument{int64_t(*made.function), size_t(made.value.number())}
                      : Program::Argument{});
  return arguments;
}

} // namespace

Entries textEntries(ir::Attribute attribute) {
  Entries found;
  if (auto entries = ir::dynCast<ir::DictionaryAttr>(attribute))
    for (ir::NamedAttribute entry : entries)
      if (auto text = ir::dynCast<ir::StringAttr>(entry.value))
        found[std::string(entry.name.str())] = text.value();
  return found;
}

bool anyEntries(ir::Operation module, const std::function<bool(const Entries &)> &accepts) {
  ir::PointerMap<bool> asked;
  ir::OpList operations(module);
  return std::any_of(operations.begin() + 1, operations.end(), [&](const ir::OpList::Item &item) {
    ir::Attribute entries = item.op.attr(ir::kFrontendAttributes);
    bool isNew = entries && asked.insert(entries.opaque()).second;
    return isNew && accepts(textEntries(entries));
  });
}

Program Program::ofOperations(MlirOperation module, std::string_view token, bool every) {
  ir::OpList operations{ir::Operation(module)};
  ir::OpIds ids(operations[0].op.context());
  analysis::DataFlow flow(operations, ids);
  std::vector<size_t> values = flow.values();
  Program program;
  program.token = token;
  Table kinds(program.kinds, [](ir::Identifier name) { return Kind(name.str()); });
  Table entries(program.entries, textEntries);
  ir::PointerMap<size_t> places;
  for (size_t i = 0; i < flow.size(); ++i) {
    ir::Operation op = operations[i + 1].op;
    ir::Location location = op.location();
    auto named = ir::dynCast<ir::NameLoc>(location);
    auto [place, isNew] = places.insert((named ? named.child() : location).opaque());
    if (isNew)
      *place = places.size();
    Operation &made = program.operations.emplace_back();
    made.kind = kinds[operations[i + 1].name];
    made.entries = entries[op.attr(ir::kFrontendAttributes)];
    made.dimensions = firstDimensions(op);
    made.operands = numbersOf(flow.operands(i));
    made.place = *place;
    made.value = values[i];
    made.arguments = argumentsOf(flow.operands(i));
    made.callee = numberOf(flow.callee(i));
  }
  program.results = numbersOf(flow.results());
  ir::Rewriter rewriter(operations[0].op.context());
  for (auto [helper, number] : numberNames(rewriter, operations, ids, token, every))
    program.operations[number].helpers.push_back(int64_t(helper));
  rewriter.commit();
  return program;
}

Program Program::ofInstructions(const Module &module, const Numbers &numbers) {
  Program program;
  auto numberOf = [&](size_t i) { return numbers.at(module.findSource(i)); };
  for (size_t i = 0; i < module.instructions.size(); ++i) {
    if (numbers.at(i) == kNone)
      continue;
    size_t number = program.operations.size();
    Operation &made = program.operations.emplace_back();
    made.kind = made.entries = made.place = made.value = number;
    made.dimensions = module.dimensions(i);
    program.kinds.push_back(module.kind(i));
    program.entries.push_back(module.attributes(i));
    for (size_t operand : module.instructions[i].operands)
      made.operands.push_back(numberOf(operand));
  }
  for (size_t result : module.results())
    program.results.push_back(numberOf(result));
  return program;
}

bool Program::areAtOnePlace(const Numbers &numbers) const {
  auto placeOf = [&](int64_t number) {
    return size_t(number) < operations.size() ? operations[size_t(number)].place : size_t(-1);
  };
  return !numbers.empty() && std::all_of(numbers.begin(), numbers.end(), [&](int64_t number) {
    return placeOf(number) == placeOf(numbers[0]);
  });
}

} // namespace hlotag::hlo
