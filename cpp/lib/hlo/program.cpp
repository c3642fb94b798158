// SPDX-License-Identifier: Apache-2.0
#include "hlotag/hlo/program.h"

#include "hlotag/analysis/data_flow.h"
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

/// Returns the dimensions in the text of a type, `tensor<2x?xf32>`; none for other types.
Numbers dimensionsIn(std::string_view type) {
  constexpr std::string_view kTensor = "tensor<";
  Numbers dimensions;
  if (type.substr(0, kTensor.size()) != kTensor)
    return dimensions;
  type.remove_prefix(kTensor.size());
  for (size_t end;
       (end = type.find_first_not_of("0123456789?")) != 0 && end != type.npos && type[end] == 'x';
       type.remove_prefix(end + 1))
    dimensions.push_back(type[0] == '?' ? -1 : std::stoll(std::string(type.substr(0, end))));
  return dimensions;
}

/// Returns the type of the first result, or null.
ir::Attribute typeOf(ir::Operation op) {
  ir::Operation::Results results = op.results();
  return results.empty() ? ir::Attribute() : capi::fn().mlirTypeAttrGet(results[0].type());
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
  return !ir::walk(module, [&](ir::Operation op) {
    ir::Attribute entries = op.attr(ir::kFrontendAttributes);
    bool isNew = op != module && entries && asked.insert(entries.opaque()).second;
    bool isAccepted = isNew && accepts(textEntries(entries));
    return isAccepted ? ir::WalkResult::Interrupt : ir::WalkResult::Advance;
  });
}

Program Program::ofOperations(MlirOperation module, std::string_view token, bool every) {
  ir::OpList operations{ir::Operation(module)};
  ir::OpIds ids(operations[0].op.context());
  analysis::DataFlow flow(operations, ids);
  std::vector<size_t> values = flow.values();
  Program program;
  program.token = token;
  Table names(program.names, [](ir::Identifier name) { return std::string(name.str()); });
  Table entries(program.entries, textEntries);
  Table dimensions(program.dimensions,
                   [](ir::Attribute type) { return type ? dimensionsIn(type.str()) : Numbers(); });
  ir::PointerMap<size_t> places;
  for (size_t i = 0; i < flow.size(); ++i) {
    ir::Operation op = operations[i + 1].op;
    ir::Location location = op.location();
    auto named = ir::dynCast<ir::NameLoc>(location);
    auto [place, isNew] = places.insert((named ? named.child() : location).opaque());
    if (isNew)
      *place = places.size();
    Operation &made = program.operations.emplace_back();
    made.name = names[operations[i + 1].name];
    made.entries = entries[op.attr(ir::kFrontendAttributes)];
    made.dimensions = dimensions[typeOf(op)];
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

Program Program::ofInstructions(const Module &module, const Kinds &kinds, const Numbers &numbers) {
  Program program;
  auto numberOf = [&](size_t i) { return numbers.at(module.findSource(i)); };
  for (size_t i = 0; i < module.instructions.size(); ++i) {
    if (numbers.at(i) == kNone)
      continue;
    size_t number = program.operations.size();
    Operation &made = program.operations.emplace_back();
    made.name = made.entries = made.dimensions = made.place = made.value = number;
    program.names.push_back(kinds[module.instructions[i].opcode].name);
    program.entries.push_back(module.attributes(i));
    program.dimensions.push_back(module.dimensions(i));
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
