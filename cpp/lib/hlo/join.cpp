// SPDX-License-Identifier: Apache-2.0
#include "hlotag/hlo/join.h"

#include "operations.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <utility>

namespace hlotag::hlo {

namespace {

// The heavy kind of products of matrices and convolutions.
constexpr std::string_view kContraction = "contraction";

class Join {
public:
  Join(const Module &module, Kinds &kinds, const Program &program,
       const std::vector<NumberedName> &names)
      : module_(module), names_(names), operations_(program, kinds),
        unique_(program.operations.size()), facts_(module.instructions.size()),
        order_(module.usersFirst()) {}

  std::vector<Ids> run() {
    for (size_t i : order_) {
      facts_[i].ids = byName(i, names_.at(i));
      bool hasAllNames = names_[i].isCombined && module_.kind(i).isCombinable;
      facts_[i].isUnsure = !hasAllNames && (isCombined(i) || !isEnough(i));
    }
    findUsers();
    findResults();
    for (size_t i : order_)
      if (facts_[i].isUnsure) {
        followUsers(i);
        findPart(i);
      }
    fillWrappers();
    fillRegions();
    adoptNameless();
    std::vector<Ids> ids;
    ids.reserve(facts_.size());
    for (Facts &facts : facts_)
      ids.push_back(std::move(facts.ids));
    return ids;
  }

private:
  using Use = std::pair<size_t, size_t>; // What uses a value, and at which operand.
  struct Facts {
    Ids ids;
    // Of instructions whose name is not enough: what uses them; the operations whose values they
    // must compute, since their users take them for that, or for the other operand, which XLA may
    // have swapped; and their users' operations. Helpers belong to those, and compute none.
    bool isUnsure = false, isHelper = false;
    std::vector<Use> users;
    Ids results, wanted, swapped, owners;
  };

  size_t opcode(size_t i) const { return module_.instructions[i].opcode; }

  Ids byName(size_t i, const NumberedName &named) {
    Ids numbers = named.numbers;
    if (named.isCombined && module_.kind(i).isCombinable)
      return members(i, numbers);
    // Of merged operations, those that it can be are its own; the others were folded into it, or
    // into what it is around.
    if (!numbers.empty() && isAround(i, numbers[0]))
      numbers.resize(1);
    Ids own = operations_.select(numbers, opcode(i));
    if (!own.empty() || numbers.empty())
      return own;
    // An operand that is of the same equation has the name of its user; which of several it is,
    // the user's operands say.
    Ids helpers;
    for (int64_t helper : operations_.helpers(numbers[0], opcode(i)))
      if (operations_.kind(helper).opcode == opcode(i))
        helpers.push_back(helper);
    if (helpers.size() == 1)
      numbers[0] = helpers[0];
    return numbers;
  }

  /// Whether an instruction only changes the shape of what an operation computes: XLA puts such
  /// ones around an instruction, under its name, and moves them about.
  bool isAround(size_t i, int64_t number) {
    return module_.kind(i).isReshaped && !operations_.becomes(number, opcode(i));
  }

  /// Whether an instruction's name and what it does may both be true.
  bool isEnough(size_t i) {
    const Kinds::Kind &kind = module_.kind(i);
    if (kind.isWrapper || kind.isParameter)
      return true;
    const Ids &ids = facts_[i].ids;
    if (!ids.empty() && operations_.kind(ids[0]).opcode != opcode(i) && slicedContraction(i))
      return false;
    // A heavy operation is a step of its own to whoever wrote it: a name that says otherwise is a
    // neighbour's.
    bool isTelling = kind.isMove || kind.isHeavy;
    return !ids.empty() && (!isTelling || operations_.becomes(ids[0], opcode(i)));
  }

  void findUsers() {
    for (size_t user : order_) {
      if (module_.kind(user).isWrapper)
        continue;
      const std::vector<size_t> &operands = module_.instructions[user].operands;
      for (size_t position = 0; position < operands.size(); ++position) {
        Facts &source = facts_[module_.source(operands[position])];
        if (source.isUnsure)
          source.users.emplace_back(user, position);
      }
    }
  }

  void findResults() {
    const Ids &results = operations_.results();
    std::vector<size_t> values = module_.results();
    if (values.size() == 1) // A combined collective computes all results.
      values.resize(results.size(), values[0]);
    for (size_t i = 0; results.size() == values.size() && i < values.size(); ++i)
      if (results[i] != kNone)
        facts_[values[i]].results.push_back(results[i]);
  }

  void followUsers(size_t i) {
    Facts &facts = facts_[i];
    unique_.start();
    for (int64_t number : facts.results)
      unique_.add(facts.wanted, number);
    for (auto [user, position] : facts.users)
      want(facts.wanted, user, position);
    unique_.start();
    for (auto [user, position] : facts.users)
      wantOther(facts.swapped, user, position);
    unique_.start();
    // A tuple, that of a loop's state for one, says least about whose a value is.
    bool isComputedWith = std::any_of(facts.users.begin(), facts.users.end(), [&](const auto &use) {
      return !module_.kind(use.first).isTuple;
    });
    for (auto [user, position] : facts.users) {
      if (isComputedWith && module_.kind(user).isTuple)
        continue;
      const Facts &of = facts_[user];
      const Ids &owners = of.ids.empty() && module_.kind(user).isXlasOwn ? of.owners : of.ids;
      for (int64_t number : owners)
        unique_.add(facts.owners, number);
    }
    if (facts.owners.empty())
      facts.owners = expanded(i);
    std::sort(facts.owners.begin(), facts.owners.end());
    bool isCollective = isCombined(i) || (facts.ids.empty() && module_.kind(i).isCombinable);
    facts.ids = isCollective ? combined(i) : byFlow(i);
  }

  /// The operation that was expanded to a loop, if an instruction is what that computes.
  Ids expanded(size_t i) const {
    const Module::Computation &computation =
        module_.computations[module_.instructions[i].computation];
    if (computation.root != i || !computation.caller)
      return {};
    size_t loop = *computation.caller;
    const Ids &ids = facts_[loop].ids;
    bool isExpansion = module_.kind(loop).isLoop && !ids.empty() &&
                       operations_.kind(ids[0]).opcode != opcode(loop);
    return isExpansion ? ids : Ids();
  }

  /// Adds the operations that could compute an operand, by what uses it.
  void want(Ids &wanted, size_t user, size_t position) {
    const Facts &facts = facts_[user];
    if (!isKnown(user)) {
      // It hands on what its own users want, and what it is named after.
      if (!handsOn(user, position))
        return;
      for (int64_t number : facts.wanted)
        unique_.add(wanted, number);
      if (facts.isHelper)
        return;
      for (int64_t number : facts.ids)
        unique_.add(wanted, number);
      return;
    }
    const Kinds::Kind &kind = module_.kind(user);
    if (kind.isCombinable && facts.ids.size() > 1) // It takes what all of them take.
      return;
    for (int64_t number : operations_.select(facts.ids, opcode(user))) {
      // What an operation was rewritten to has operands of its own: the reduction that a
      // contraction became takes what that computes, the shift that a division became another
      // constant.
      if (isRewritten(user, number))
        continue;
      Ids operands = operations_.operands(number, names_[user].callers);
      if (operands.size() != module_.instructions[user].operands.size())
        continue;
      if (kind.heavy == kContraction && areSwapped(user, operands))
        std::swap(operands[0], operands[1]);
      if (operands[position] != kNone)
        unique_.add(wanted, operands[position]);
    }
  }

  bool isRewritten(size_t i, int64_t number) const {
    const Kinds::Kind &kind = module_.kind(i), &own = operations_.kind(number);
    return kind.isHeavy ? kind.heavy != own.heavy : !kind.isMove && opcode(i) != own.opcode;
  }

  /// Whether sizes say that XLA swapped the operands of a contraction.
  bool areSwapped(size_t i, const Ids &operands) const {
    uint64_t first = numElements(module_.dimensions(module_.instructions[i].operands[0]));
    auto isFirst = [&](int64_t number) {
      return number != kNone && numElements(operations_.dimensions(number)) == first;
    };
    return operands.size() == 2 && !isFirst(operands[0]) && isFirst(operands[1]);
  }

  /// Adds the operations that could compute an operand, if its user takes the other one for it.
  void wantOther(Ids &wanted, size_t user, size_t position) {
    if (module_.kind(user).isCommutative && module_.instructions[user].operands.size() == 2)
      want(wanted, user, 1 - position);
    else if (!isKnown(user) && handsOn(user, position))
      for (int64_t number : facts_[user].swapped)
        unique_.add(wanted, number);
  }

  /// Whether an instruction is one of the program's operations. A nameless slice may be a part of
  /// what XLA combined or scattered.
  bool isKnown(size_t i) {
    const Facts &facts = facts_[i];
    return !facts.ids.empty() && !facts.isHelper && !(facts.isUnsure && module_.kind(i).isSlice) &&
           operations_.becomes(facts.ids[0], opcode(i));
  }

  /// Whether the users of an instruction use an operand of it, or a part.
  bool handsOn(size_t i, size_t position) const {
    return position == 0 && (module_.kind(i).isMove || module_.kind(i).isSlice);
  }

  /// Whether an instruction may stand for several collectives.
  bool isCombined(size_t i) const {
    return module_.kind(i).isCombinable && module_.instructions[i].operands.size() > 1;
  }

  /// The operations of a collective that XLA combined: of each part of its result, what the users
  /// of the part take it for.
  Ids combined(size_t i) {
    const Facts &facts = facts_[i];
    Ids ids = members(i, facts.ids);
    std::vector<Use> whole;
    for (const Use &use : facts.users) {
      const Kinds::Kind &kind = module_.kind(use.first);
      if (kind.isElement || (kind.isSlice && !isKnown(use.first)))
        addMember(ids, i, facts_[use.first].results, facts_[use.first].owners, {use});
      else
        whole.push_back(use);
    }
    bool returnsParts = module_.instructions[i].operands.size() == facts.results.size();
    for (size_t part = 0; returnsParts && part < facts.results.size(); ++part)
      addMember(ids, i, {facts.results[part]}, facts.owners, {});
    if (!whole.empty() || (!returnsParts && !facts.results.empty()))
      addMember(ids, i, facts.results, facts.owners, whole);
    return ids.empty() ? byFlow(i) : ids;
  }

  /// What the numbers in the names of collectives stand for.
  Ids members(size_t i, const Ids &numbers) {
    Ids ids;
    for (int64_t number : numbers) {
      int64_t source = operations_.source(number, opcode(i));
      addOnce(ids, source == kNone ? number : source);
    }
    return ids;
  }

  /// Adds the operation whose result is a part of a collective's: the program's `results`, or taken
  /// by `uses`, which come from `owners`.
  void addMember(Ids &ids, size_t i, const Ids &results, const Ids &owners,
                 const std::vector<Use> &uses) {
    Ids wanted, swapped;
    unique_.start();
    for (int64_t number : results)
      unique_.add(wanted, number);
    for (auto [user, position] : uses)
      want(wanted, user, position);
    unique_.start();
    for (auto [user, position] : uses)
      wantOther(swapped, user, position);
    const std::string &heavy = module_.kind(i).heavy;
    bool isSum = heavy == "all-reduce" || heavy == "reduce-scatter";
    // XLA makes one sum over devices of several that the program adds.
    Ids added;
    for (int64_t number : isSum ? wanted : Ids())
      for (int64_t operand : operations_.operands(number))
        added.push_back(operand);
    for (const Ids *numbers : {&wanted, &swapped, &added}) {
      bool isFound = false;
      for (int64_t number : *numbers)
        if (int64_t source = operations_.source(number, opcode(i)); source != kNone) {
          addOnce(ids, source);
          isFound = true;
        }
      if (isFound)
        return;
    }
    // XLA's partitioner made it: to sum up what an operation computes, or to gather what the first
    // of some operations takes.
    if (const Ids &made = isSum && !wanted.empty() ? wanted : owners; !made.empty())
      addOnce(ids, made[0]);
  }

  static void addOnce(Ids &ids, int64_t number) {
    if (std::find(ids.begin(), ids.end(), number) == ids.end())
      ids.push_back(number);
  }

  Ids byFlow(size_t i) {
    Facts &facts = facts_[i];
    if (!facts.ids.empty() && module_.kind(i).isMove)
      return moved(i);
    for (const Ids *numbers : {&facts.ids, &facts.wanted, &facts.swapped}) {
      Ids sources;
      unique_.start();
      for (int64_t number : *numbers)
        if (int64_t source = operations_.source(number, opcode(i)); source != kNone)
          unique_.add(sources, source);
      keepOfSize(sources, numElements(module_.dimensions(i)));
      if (!sources.empty())
        return sources;
    }
    if (Ids ids = absorbed(i); !ids.empty())
      return ids;
    if (!facts.ids.empty())
      return facts.ids;
    facts.isHelper = true;
    return owner(i);
  }

  /// Operations of the instruction's kind, and the named one, which is of no such kind and was
  /// folded into them: XLA makes one scatter of the sum of two.
  Ids absorbed(size_t i) {
    const Kinds::Kind &kind = module_.kind(i);
    const Ids &named = facts_[i].ids;
    if (!kind.isHeavy || named.empty() || operations_.kind(named[0]).isHeavy)
      return {};
    uint64_t size = numElements(module_.dimensions(i));
    Ids ids;
    unique_.start();
    for (int64_t operand : operations_.operands(named[0])) {
      int64_t source = operations_.source(operand, opcode(i));
      if (source != kNone && operations_.kind(source).heavy == kind.heavy &&
          numElements(operations_.dimensions(source)) == size)
        unique_.add(ids, source);
    }
    if (!ids.empty())
      for (int64_t number : named)
        unique_.add(ids, number);
    return ids;
  }

  /// Of several operations, those that make so many elements, if any do: users take operands in
  /// another order where XLA writes a contraction as a product.
  void keepOfSize(Ids &numbers, uint64_t size) {
    Ids fitting;
    for (int64_t number : numbers)
      if (numElements(operations_.dimensions(number)) == size)
        fitting.push_back(number);
    if (!fitting.empty())
      numbers = std::move(fitting);
  }

  /// What moves a value may bear the name of a neighbour; its attributes tell which of them it is,
  /// if it has any.
  Ids moved(size_t i) {
    const Ids &named = facts_[i].ids;
    Ids wanted = operations_.select(facts_[i].wanted, opcode(i));
    if (!wanted.empty()) {
      uint64_t size = numElements(module_.dimensions(i));
      wanted.erase(std::remove_if(wanted.begin(), wanted.end(),
                                  [&](int64_t number) {
                                    return numElements(operations_.dimensions(number)) != size;
                                  }),
                   wanted.end());
    }
    Ids helpers = operations_.helpers(named[0], opcode(i));
    helpers.resize(std::min<size_t>(helpers.size(), 1));
    if (Entries entries = module_.attributes(i); !entries.empty()) {
      Ids users = relabels(i) ? relabelled(i, operations_.relabellings(named[0])) : Ids();
      for (const Ids *ids : std::initializer_list<const Ids *>{&wanted, &users, &helpers, &named})
        if (!ids->empty() && bears(entries, (*ids)[0]))
          return *ids;
    }
    return !wanted.empty() ? wanted : !helpers.empty() ? helpers : named;
  }

  /// The contraction that an instruction is a slice of, reshaped or not.
  std::optional<size_t> slicedContraction(size_t i) const {
    bool isPart = module_.kind(i).isSlice;
    for (int step = 0; isPart && step < 8; ++step) {
      i = module_.source(module_.instructions[i].operands.at(0));
      if (module_.kind(i).heavy == kContraction)
        return i;
      isPart = module_.kind(i).isReshaped;
    }
    return std::nullopt;
  }

  /// XLA makes one contraction of several that share an operand, under the name of one of them, and
  /// slices of it: the users of a slice say whose part it is, and the contraction is of all of
  /// them.
  void findPart(size_t i) {
    std::optional<size_t> whole = slicedContraction(i);
    if (!whole)
      return;
    Ids parts;
    for (int64_t number : facts_[i].wanted) {
      int64_t source = operations_.source(number, opcode(*whole));
      if (source != kNone && operations_.kind(source).heavy == kContraction &&
          numElements(operations_.dimensions(source)) == numElements(module_.dimensions(i)))
        parts.push_back(source);
    }
    if (parts.size() != 1)
      return;
    facts_[i].ids = parts;
    Ids &all = facts_[*whole].ids;
    if (std::find(all.begin(), all.end(), parts[0]) == all.end())
      all.push_back(parts[0]);
  }

  /// Whether an operation has entries, and all of them are among `entries`.
  bool bears(const Entries &entries, int64_t number) {
    const Entries &own = operations_.entries(number);
    return !own.empty() && std::includes(entries.begin(), entries.end(), own.begin(), own.end());
  }

  /// Whether an instruction may leave all elements in their order.
  bool relabels(size_t i) const { return module_.kind(i).isRelabelled; }

  /// The first operation whose result an instruction that relabels can be, by what it bears.
  Ids relabelled(size_t i, const Ids &candidates) {
    Entries entries = module_.attributes(i);
    Ids dimensions = module_.dimensions(i);
    auto isBorne = [&](const Entries::value_type &entry) {
      auto found = entries.find(entry.first);
      return found != entries.end() && found->second == entry.second;
    };
    for (int64_t number : candidates) {
      const Entries &own = operations_.entries(number);
      if (operations_.relabels(number) && std::any_of(own.begin(), own.end(), isBorne) &&
          operations_.dimensions(number) == dimensions)
        return {number};
    }
    return {};
  }

  /// What an instruction without a name belongs to: the operations that its users came from.
  Ids owner(size_t i) const {
    const Kinds::Kind &kind = module_.kind(i);
    // Several share constants and the like; a step of its own is not shared by accident.
    bool isNobodys = kind.isXlasOwn || (kind.isHeavy && facts_[i].owners.size() > 1);
    return isNobodys ? Ids() : facts_[i].owners;
  }

  void fillWrappers() {
    for (size_t i : order_)
      if (module_.kind(i).isWrapper)
        if (const Ids &ids = facts_[root(i)].ids; !ids.empty())
          facts_[i].ids = ids;
  }

  /// What a wrapper is for: its root, or what its root is made from by moves of XLA's own.
  size_t root(size_t wrapper) {
    size_t root = module_.wrapped(wrapper);
    while (module_.kind(root).isCopied && facts_[root].ids.empty()) {
      size_t operand = module_.instructions[root].operands.at(0);
      root = module_.source(operand);
    }
    return root;
  }

  /// What is in the body of a reduction, a sort or a scatter belongs to that, if it is nameless;
  /// else to the operations in its regions, for XLA makes equal bodies one, with the names of any.
  void fillRegions() {
    std::vector<std::vector<size_t>> callers(module_.computations.size());
    for (size_t i : order_)
      if (!facts_[i].ids.empty() && !module_.kind(i).isControl)
        for (size_t callee : module_.instructions[i].called)
          callers[callee].push_back(i);
    for (size_t callee = 0; callee < callers.size(); ++callee)
      for (size_t i = module_.computations[callee].begin; i < module_.computations[callee].end; ++i)
        fillFrom(callers[callee], i);
  }

  void fillFrom(const std::vector<size_t> &callers, size_t i) {
    Ids &ids = facts_[i].ids;
    Ids found;
    unique_.start();
    for (size_t caller : callers) {
      if (!ids.empty()) {
        int64_t number = operations_.counterpart(ids[0], facts_[caller].ids);
        if (number != kNone)
          unique_.add(found, number);
      } else if (!module_.kind(i).isXlasOwn) {
        found = facts_[caller].ids;
      }
    }
    if (!found.empty())
      ids = std::move(found);
  }

  /// Relabelled arguments: only tags can tell whose they are.
  void adoptNameless() {
    std::vector<size_t> nameless;
    for (size_t i : order_)
      if (facts_[i].ids.empty() && relabels(i) && !module_.instructions[i].attributes.empty())
        nameless.push_back(i);
    if (nameless.empty())
      return;
    std::vector<bool> isPresent(operations_.size());
    for (const Facts &facts : facts_)
      for (int64_t number : facts.ids)
        isPresent.at(size_t(number)) = true;
    Ids gone;
    for (size_t number = 0; number < isPresent.size(); ++number)
      if (!isPresent[number])
        gone.push_back(int64_t(number));
    for (size_t i : nameless)
      facts_[i].ids = relabelled(i, gone);
  }

  const Module &module_;
  const std::vector<NumberedName> &names_;
  Operations operations_;
  Unique unique_;
  std::vector<Facts> facts_;
  std::vector<size_t> order_;
};

} // namespace

void setCallsApart(NumberedName &named, const Program &program) {
  auto isCall = [&](int64_t number) {
    return program.names[program.operations.at(size_t(number)).name] == "func.call";
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
  return Join(module, kinds, program, names).run();
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
