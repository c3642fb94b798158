// SPDX-License-Identifier: Apache-2.0
#include "hlotag/hlo/restore.h"

#include "fields.h"
#include "hlotag/hlo/join.h"
#include "hlotag/hlo/wire.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace hlotag::hlo {

namespace {

/// The changes to one instruction; missing fields stay unchanged.
struct Change {
  std::optional<std::string> opName;
  const std::string *attributes = nullptr; // A message.
};

/// The answer of the rules for equal instructions.
struct Decision {
  std::optional<std::string> attributes;
  std::string label;
};

std::string toMessage(const Entries &entries) {
  std::string message, entry;
  for (const auto &[key, value] : entries) {
    entry.clear();
    wire::append(entry, fields::entry::kKey, key);
    wire::append(entry, fields::entry::kValue, value);
    wire::append(message, fields::attributes::kMap, entry);
  }
  return message;
}

class Restorer {
public:
  Restorer(const Program &program, Kinds &kinds, Rules &rules)
      : program_(program), kinds_(kinds), rules_(rules) {}

  Change change(const Module &module, size_t i, const Ids &ids,
                const std::vector<NumberedName> &names) {
    const NumberedName &named = names[i];
    std::string_view opName = module.instructions[i].opName;
    const Decision &decision = decide(module, i, ids, named, isCombined(module, i, ids, names));
    std::string name =
        withoutNumbers(opName, program_.token, program_.areAtOnePlace(named.numbers));
    if (!decision.label.empty() && !name.empty())
      name.insert(name.rfind('/') + 1, decision.label + '/');
    Change change;
    if (decision.attributes)
      change.attributes = &*decision.attributes;
    if (name != opName)
      change.opName = std::move(name);
    return change;
  }

private:
  using Key = std::tuple<std::string_view, std::vector<size_t>, std::vector<size_t>, bool, bool>;

  const Decision &decide(const Module &module, size_t i, const Ids &ids, const NumberedName &named,
                         bool isCombined) {
    const Module::Instruction &instruction = module.instructions[i];
    Key key{instruction.attributes, entriesOf(ids), entriesOf(named.callers),
            !ids.empty() && isOwn(module.kind(i), instruction.opcode, ids[0], named), isCombined};
    auto [known, isNew] = decisions_.try_emplace(std::move(key));
    Decision &decision = known->second;
    if (isNew) {
      const auto &[before, own, callers, isOperation, combined] = known->first;
      Rules::Case asked{module.attributes(i), own, callers, isOperation, combined};
      Entries after = ids.empty() ? asked.before : rules_.entriesFor(asked);
      if (after != asked.before)
        decision.attributes = toMessage(after);
      decision.label = rules_.labelFor(after);
    }
    return decision;
  }

  /// Returns true if an instruction, or the one that it wraps, replaces several collectives. XLA
  /// reuses one of them and joins the names, or makes a new one without a name.
  static bool isCombined(const Module &module, size_t i, const Ids &ids,
                         const std::vector<NumberedName> &names) {
    if (ids.size() < 2)
      return false;
    size_t made = module.wrapped(i);
    return module.kind(made).isCombinable &&
           (module.instructions[made].operands.size() > 1 || names[made].isCombined ||
            names[made].numbers.empty());
  }

  /// Returns whether an instruction computes the result of its operation.
  bool isOwn(const Kinds::Kind &kind, size_t opcode, int64_t number, const NumberedName &named) {
    const Ids &numbers = named.numbers;
    const std::string &name = program_.names[program_.operations[size_t(number)].name];
    return !kind.isConstant &&
           (std::find(numbers.begin(), numbers.end(), number) != numbers.end() ||
            kinds_.mayBe(kinds_.of(name), opcode));
  }

  std::vector<size_t> entriesOf(const Ids &numbers) const {
    std::vector<size_t> entries;
    for (int64_t number : numbers)
      entries.push_back(program_.operations.at(size_t(number)).entries);
    return entries;
  }

  const Program &program_;
  Kinds &kinds_;
  Rules &rules_;
  std::map<Key, Decision> decisions_;
};

/// Makes each frame the parent of the next. Ids count from 1; 0 is none.
std::string chained(std::string_view frames) {
  std::string result, frame;
  uint64_t parent = 0;
  for (wire::Message field(frames); field.next();) {
    if (field.field() != fields::frames::kFrames) {
      result += field.raw();
      continue;
    }
    frame.clear();
    for (wire::Message part(field.bytes()); part.next();)
      if (part.field() != fields::frames::kParent)
        frame += part.raw();
    wire::append(frame, fields::frames::kParent, parent++);
    wire::append(result, fields::frames::kFrames, frame);
  }
  return result;
}

/// Writes a module with changes. Makes an inner message first, because its length precedes it in
/// the outer one.
class Writer {
public:
  Writer(const std::vector<Change> &changes, bool keepsFrames)
      : next_(changes.begin()), keepsFrames_(keepsFrames) {}

  std::string write(std::string_view module) {
    std::string result;
    result.reserve(module.size());
    for (wire::Message field(module); field.next();) {
      if (field.field() == fields::module::kComputations)
        wire::append(result, fields::module::kComputations, computation(field.bytes()));
      else if (field.field() == fields::module::kStackFrames && keepsFrames_)
        wire::append(result, fields::module::kStackFrames, chained(field.bytes()));
      else
        result += field.raw();
    }
    return result;
  }

private:
  const std::string &computation(std::string_view message) {
    computation_.clear();
    for (wire::Message field(message); field.next();) {
      const Change *change =
          field.field() == fields::computation::kInstructions ? &*next_++ : nullptr;
      if (change && (change->opName || change->attributes))
        wire::append(computation_, fields::computation::kInstructions,
                     instruction(field.bytes(), *change));
      else
        computation_ += field.raw();
    }
    return computation_;
  }

  const std::string &instruction(std::string_view message, const Change &change) {
    instruction_.clear();
    for (wire::Message field(message); field.next();) {
      if (field.field() == fields::instruction::kMetadata && change.opName)
        wire::append(instruction_, fields::instruction::kMetadata,
                     metadata(field.bytes(), *change.opName));
      else if (field.field() != fields::instruction::kFrontendAttributes || !change.attributes)
        instruction_ += field.raw();
    }
    if (change.attributes)
      wire::append(instruction_, fields::instruction::kFrontendAttributes, *change.attributes);
    return instruction_;
  }

  const std::string &metadata(std::string_view message, std::string_view opName) {
    metadata_.clear();
    for (wire::Message field(message); field.next();)
      if (field.field() != fields::metadata::kOpName)
        metadata_ += field.raw();
    wire::append(metadata_, fields::metadata::kOpName, opName);
    return metadata_;
  }

  std::vector<Change>::const_iterator next_;
  bool keepsFrames_;
  std::string computation_, instruction_, metadata_;
};

} // namespace

std::string restore(std::string_view data, const Program &program, Opcodes &opcodes, Rules &rules,
                    bool keepsFrames) {
  Kinds kinds(opcodes);
  Module module(data, kinds);
  std::vector<NumberedName> names = readNames(module, program);
  std::vector<Ids> ids = join(module, kinds, program, names);
  addEqual(ids, program);
  Restorer restorer(program, kinds, rules);
  std::vector<Change> changes;
  changes.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i)
    changes.push_back(restorer.change(module, i, ids[i], names));
  return Writer(changes, keepsFrames).write(data);
}

} // namespace hlotag::hlo
