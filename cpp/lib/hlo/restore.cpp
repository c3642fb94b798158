// SPDX-License-Identifier: Apache-2.0
#include "hlotag/hlo/restore.h"

#include "fields.h"
#include "hlotag/hlo/edit.h"
#include "hlotag/hlo/join.h"
#include "hlotag/hlo/wire.h"
#include "hlotag/hlo/work.h"
#include "hlotag/ir/keys.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace hlotag::hlo {

namespace {

/// What equal instructions get.
struct Decision {
  std::optional<std::string> attributes; // If they are not what they were before.
  std::string label;
};

class Restorer {
public:
  Restorer(const Module &module, const Program &program, Rules &rules, bool keepsNumbers)
      : module_(module), program_(program), rules_(rules), keepsNumbers_(keepsNumbers),
        names_(readNames(module, program)), ids_(join(module, program, names_)),
        heaviest_(findHeaviest(module)), fusions_(findFusions(module)),
        isApplied_(findApplied(module)), work_(measureWork(module)),
        given_(module.instructions.size()) {
    addEqual(ids_, program);
    // Callees come first, so that no fusion has to ask for one within it.
    for (size_t i = 0; i < given_.size(); ++i) {
      efforts_.push_back(measureEffort(i));
      give(i);
    }
  }

  /// Returns the next computation of the module with the changes to its instructions.
  const std::string &write(std::string_view computation) {
    computation_.clear();
    for (wire::Message field(computation); field.next();)
      if (field.field() == fields::computation::kInstructions)
        write(next_++, field);
      else
        computation_ += field.raw();
    return computation_;
  }

private:
  static constexpr uint64_t kMaxEffort = uint64_t(1) << 40; // no sum over a module overflows

  using Key = std::tuple<std::string_view, std::vector<size_t>, std::vector<size_t>, bool, bool,
                         std::optional<Entries>>;

  /// Makes an inner message first, because its length precedes it in the outer one.
  void write(size_t i, const wire::Message &instruction) {
    const Decision &decision = decide(i);
    std::string_view opName = module_.instructions[i].opName;
    std::string name = keepsNumbers_ ? std::string(opName) : nameOf(i, decision);
    if (name == opName && !decision.attributes) {
      computation_ += instruction.raw();
      return;
    }
    instruction_.clear();
    for (wire::Message field(instruction.bytes()); field.next();) {
      if (field.field() == fields::instruction::kMetadata && name != opName) {
        std::string metadata = without(fields::metadata::kOpName, field.bytes());
        wire::append(metadata, fields::metadata::kOpName, name);
        wire::append(instruction_, fields::instruction::kMetadata, metadata);
      } else if (field.field() != fields::instruction::kFrontendAttributes ||
                 !decision.attributes) {
        instruction_ += field.raw();
      }
    }
    if (decision.attributes)
      wire::append(instruction_, fields::instruction::kFrontendAttributes, *decision.attributes);
    wire::append(computation_, fields::computation::kInstructions, instruction_);
  }

  std::string nameOf(size_t i, const Decision &decision) const {
    std::string name = removeNumbers(module_.instructions[i].opName, program_.token,
                                     program_.areAtOnePlace(names_[i].numbers));
    if (!decision.label.empty() && !name.empty())
      name.insert(name.rfind('/') + 1, decision.label + '/');
    return name;
  }

  /// The entries that the rules give to an instruction, those of its fusion included.
  const Entries &give(size_t i) {
    const Entries *&given = given_[i];
    if (given)
      return *given;
    const Numbers &ids = ids_[i];
    bool isFusion = module_.kind(i).is(kFusion) && !ids.empty();
    Key key{module_.instructions[i].attributes,
            entriesOf(ids),
            entriesOf(names_[i].callers),
            !ids.empty() && isOwn(heaviest_[i], ids[0]),
            isCombined(i),
            isFusion ? std::optional(findInside(i)) : std::nullopt};
    auto [known, isNew] = asked_.try_emplace(std::move(key));
    if (isNew) {
      const auto &[before, own, callers, isOperation, combined, inside] = known->first;
      Rules::Case asked{module_.attributes(i), own, callers, isOperation, combined, inside};
      known->second = ids.empty() ? asked.before : rules_.entriesFor(asked);
    }
    return *(given = &known->second);
  }

  /// Returns by key the value on most of the work in a fusion, if that is more than what has none.
  /// Instructions without an operation do not count, as in a profile.
  Entries findInside(size_t fusion) {
    const Module::Computation &body = bodyOf(fusion);
    bool isIdle = true; // Then all count alike.
    for (size_t i = body.begin; i < body.end; ++i)
      isIdle = isIdle && (ids_[i].empty() || efforts_[i] == 0);
    std::map<std::string_view, std::vector<std::pair<std::string_view, uint64_t>>> byKey;
    uint64_t all = 0;
    for (size_t i = body.begin; i < body.end; ++i) {
      if (ids_[i].empty() || module_.kind(i).is(kParameter))
        continue;
      uint64_t work = isIdle ? 1 : efforts_[i];
      all += work;
      for (const auto &[key, value] : give(i)) {
        auto &values = byKey[key];
        auto found = std::find_if(values.begin(), values.end(),
                                  [&, &text = value](auto &each) { return each.first == text; });
        if (found == values.end())
          found = values.insert(found, {value, 0});
        found->second += work;
      }
    }
    Entries largest;
    for (auto &[key, values] : byKey) {
      uint64_t without = all;
      auto most = values.begin();
      for (auto value = values.begin(); value != values.end(); ++value) {
        without -= value->second;
        if (value->second > most->second)
          most = value;
      }
      if (most->second >= without)
        largest.emplace(key, most->first);
    }
    return largest;
  }

  /// Returns the effort of an instruction; of a fusion, that of what is in it.
  uint64_t measureEffort(size_t i) const {
    if (!module_.kind(i).is(kFusion))
      return std::min(work_[i].effort(), kMaxEffort);
    uint64_t sum = 0;
    for (size_t inner = bodyOf(i).begin; inner < bodyOf(i).end; ++inner)
      sum = std::min(sum + efforts_[inner], kMaxEffort);
    return sum;
  }

  const Module::Computation &bodyOf(size_t fusion) const {
    return module_.computations[elementAt(module_.instructions[fusion].called, 0)];
  }

  const Decision &decide(size_t i) {
    int64_t fusion = fusions_[module_.instructions[i].computation];
    const Entries *fused = fusion == kNone ? nullptr : &give(size_t(fusion));
    bool isConstant = module_.kind(i).is(kConstant);
    bool isApplied = isApplied_[module_.instructions[i].computation];
    auto [known, isNew] = decisions_.try_emplace(
        {module_.instructions[i].attributes, &give(i), fused, isConstant, isApplied});
    Decision &decision = known->second;
    if (isNew) {
      Entries after = give(i);
      decision.label = rules_.labelFor(after);
      if (fused)
        removeRepeated(after, *fused, isConstant);
      if (isApplied)
        removeNewXlaKeys(after, module_.attributes(i));
      if (after != module_.attributes(i))
        decision.attributes = toMessage(after);
    }
    return decision;
  }

  /// Removes entries that are not to be repeated in a fusion that has them. Those of constants say
  /// nothing of the fusion: XLA has one constant for many operations, and copies it into each.
  void removeRepeated(Entries &entries, const Entries &ofFusion, bool isConstant) {
    for (auto entry = entries.begin(); entry != entries.end();) {
      auto found = ofFusion.find(entry->first);
      bool isRepeated = isConstant || (found != ofFusion.end() && found->second == entry->second);
      entry = isRepeated && !rules_.isRepeated(entry->first) ? entries.erase(entry) : ++entry;
    }
  }

  /// Removes the keys that XLA reads and that were not there before. What an instruction applies to
  /// elements is not scheduled, fused or placed by itself.
  static void removeNewXlaKeys(Entries &entries, const Entries &before) {
    for (auto entry = entries.begin(); entry != entries.end();) {
      bool isNew = ir::isXlaKey(entry->first) && before.find(entry->first) == before.end();
      entry = isNew ? entries.erase(entry) : ++entry;
    }
  }

  /// Returns true if an instruction, or the one that it wraps, replaces several collectives. XLA
  /// reuses one of them and joins the names, or makes a new one without a name.
  bool isCombined(size_t i) const {
    if (ids_[i].size() < 2)
      return false;
    size_t made = module_.findWrapped(i);
    return module_.kind(made).is(kCombines) &&
           (module_.instructions[made].operands.size() > 1 || names_[made].isCombined ||
            names_[made].numbers.empty());
  }

  /// Returns whether an instruction computes the result of its operation.
  bool isOwn(size_t i, int64_t number) {
    const Numbers &numbers = names_[i].numbers;
    return !module_.kind(i).is(kConstant) &&
           (std::find(numbers.begin(), numbers.end(), number) != numbers.end() ||
            mayBe(program_.kinds[program_.operations[size_t(number)].kind], module_.kind(i)));
  }

  std::vector<size_t> entriesOf(const Numbers &numbers) const {
    std::vector<size_t> entries;
    for (int64_t number : numbers)
      entries.push_back(program_.operations.at(size_t(number)).entries);
    return entries;
  }

  const Module &module_;
  const Program &program_;
  Rules &rules_;
  bool keepsNumbers_;
  std::vector<NumberedName> names_;
  std::vector<Numbers> ids_;
  std::vector<size_t> heaviest_;
  std::vector<int64_t> fusions_; // By computation.
  std::vector<bool> isApplied_;  // By computation.
  std::vector<Work> work_;
  std::vector<uint64_t> efforts_;
  std::vector<const Entries *> given_; // By instruction, what the rules gave, if asked.
  std::map<Key, Entries> asked_;
  /// By the entries before, those given, those of the fusion, and whether it is a constant, or is
  /// applied to elements.
  std::map<std::tuple<std::string_view, const Entries *, const Entries *, bool, bool>, Decision>
      decisions_;
  size_t next_ = 0;                       // The instruction to write.
  std::string computation_, instruction_; // As written so far.
};

} // namespace

std::string restore(std::string_view data, const Program &program, Rules &rules,
                    bool keepsNumbers) {
  Module module(data);
  Restorer restorer(module, program, rules, keepsNumbers);
  std::string result;
  result.reserve(data.size());
  for (wire::Message field(data); field.next();)
    if (field.field() == fields::module::kComputations)
      wire::append(result, fields::module::kComputations, restorer.write(field.bytes()));
    else
      result += field.raw();
  return result;
}

} // namespace hlotag::hlo
