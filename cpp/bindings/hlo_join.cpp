// SPDX-License-Identifier: Apache-2.0
//
// Which operations of the program an HLO instruction came from: by the numbers in names, and by
// data flow where they fail. Here and not in Python since it asks about every instruction, and a
// compilation waits for the answer; what it wants to know of few operations (entries,
// dimensions, operands) it asks the objects in `hlotag.hlo`.
#include "hlo_data_flow.h"

namespace nb = nanobind;
using namespace hlotag;
using namespace hlotag::python;

namespace {

/// Appends numbers of operations to one list after another, each once.
class Unique {
public:
  explicit Unique(size_t numOperations) : lists_(numOperations) {}
  void start() { ++list_; }
  void add(Ids &ids, int64_t number) {
    if (std::exchange(lists_.at(size_t(number)), list_) != list_)
      ids.push_back(number);
  }

private:
  std::vector<size_t> lists_; // By operation, the last that it was appended to.
  size_t list_ = 0;
};

/// The product of dimensions.
uint64_t numElements(const Ids &dimensions) {
  uint64_t number = 1;
  for (int64_t size : dimensions)
    number *= uint64_t(size);
  return number;
}

class Join {
public:
  Join(std::string_view module, nb::handle program, nb::handle opcodes)
      : kinds_(opcodes), module_(module, kinds_), program_(program, kinds_),
        unique_(program_.size()), facts_(module_.instructions.size()),
        order_(module_.usersFirst()) {}

  nb::tuple run(const nb::callable &named) {
    for (size_t i : order_) {
      facts_[i].ids = byName(i, toNumbers(named(i, module_.instructions[i].opName)));
      facts_[i].isUnsure = !isEnough(i);
    }
    findUsers();
    findResults();
    for (size_t i : order_)
      if (facts_[i].isUnsure)
        followUsers(i);
    fillFusions();
    fillRegions();
    adoptNameless();
    nb::list ids, names, attributes;
    for (size_t i = 0; i < facts_.size(); ++i) {
      nb::list numbers;
      for (int64_t number : facts_[i].ids)
        numbers.append(number);
      ids.append(nb::tuple(numbers));
      names.append(module_.instructions[i].opName);
      attributes.append(module_.attributes(i));
    }
    return nb::make_tuple(ids, names, attributes);
  }

private:
  struct Facts {
    Ids ids;
    // Of instructions whose name is not enough: what uses them, and at which operand; the
    // operations whose values they must compute, since their users take them for that; and their
    // users' operations.
    bool isUnsure = false;
    std::vector<std::pair<size_t, size_t>> users;
    Ids results, wanted, owners;
  };

  size_t opcode(size_t i) const { return module_.instructions[i].opcode; }

  Ids byName(size_t i, Ids numbers) {
    // Of merged operations, those that it can be are its own; the others were folded into it.
    Ids own = program_.select(numbers, opcode(i));
    if (!own.empty() || numbers.empty())
      return own;
    // An operand that is of the same equation has the name of its user; which of several it is,
    // the user's operands say.
    Ids helpers;
    for (int64_t helper : program_.helpers(numbers[0], opcode(i)))
      if (program_.kind(helper).opcode == opcode(i))
        helpers.push_back(helper);
    if (helpers.size() == 1)
      numbers[0] = helpers[0];
    return numbers;
  }

  /// Whether an instruction's name and what it does may both be true.
  bool isEnough(size_t i) {
    const Kinds::Kind &kind = module_.kind(i);
    if (kind.isFusion || kind.isParameter)
      return true;
    // A heavy operation is a step of its own to whoever wrote it: a name that says otherwise is a
    // neighbour's.
    const Ids &ids = facts_[i].ids;
    bool isTelling = kind.isMove || kind.isHeavy;
    return !ids.empty() && (!isTelling || program_.becomes(ids[0], opcode(i)));
  }

  void findUsers() {
    for (size_t user : order_) {
      if (module_.kind(user).isFusion)
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
    Ids results = program_.results();
    size_t root = module_.computations[module_.entry].root;
    std::vector<size_t> values =
        module_.kind(root).isTuple ? module_.instructions[root].operands : std::vector{root};
    for (size_t i = 0; results.size() == values.size() && i < values.size(); ++i)
      if (results[i] != kNone)
        facts_[module_.source(values[i])].results.push_back(results[i]);
  }

  void followUsers(size_t i) {
    Facts &facts = facts_[i];
    unique_.start();
    for (int64_t number : facts.results)
      unique_.add(facts.wanted, number);
    for (auto [user, position] : facts.users)
      want(facts.wanted, user, position);
    unique_.start();
    for (auto [user, position] : facts.users) {
      const Facts &of = facts_[user];
      const Ids &owners = of.ids.empty() && module_.kind(user).isXlasOwn ? of.owners : of.ids;
      for (int64_t number : owners)
        unique_.add(facts.owners, number);
    }
    std::sort(facts.owners.begin(), facts.owners.end());
    facts.ids = byFlow(i);
  }

  /// Adds the operations that could compute an operand, by what uses it.
  void want(Ids &wanted, size_t user, size_t position) {
    const Facts &facts = facts_[user];
    if (facts.ids.empty() || !program_.becomes(facts.ids[0], opcode(user))) {
      // It hands on what its own users want, and what it is named after.
      if (!module_.kind(user).isMove || position != 0)
        return;
      for (const Ids *numbers : {&facts.wanted, &facts.ids})
        for (int64_t number : *numbers)
          unique_.add(wanted, number);
      return;
    }
    for (int64_t number : program_.select(facts.ids, opcode(user))) {
      const Ids &operands = program_.operands(number);
      if (operands.size() == module_.instructions[user].operands.size() &&
          operands[position] != kNone)
        unique_.add(wanted, operands[position]);
    }
  }

  Ids byFlow(size_t i) {
    const Facts &facts = facts_[i];
    if (!facts.ids.empty() && module_.kind(i).isMove)
      return moved(i);
    for (const Ids *numbers : {&facts.ids, &facts.wanted}) {
      Ids sources;
      unique_.start();
      for (int64_t number : *numbers)
        if (int64_t source = program_.source(number, opcode(i)); source != kNone)
          unique_.add(sources, source);
      if (!sources.empty())
        return sources;
    }
    return facts.ids.empty() ? owner(i) : facts.ids;
  }

  /// What moves a value may bear the name of a neighbour; its attributes tell which of them it is,
  /// if it has any.
  Ids moved(size_t i) {
    const Ids &named = facts_[i].ids;
    Ids wanted = program_.select(facts_[i].wanted, opcode(i));
    if (!wanted.empty()) {
      uint64_t size = numElements(module_.dimensions(i));
      wanted.erase(std::remove_if(wanted.begin(), wanted.end(),
                                  [&](int64_t number) {
                                    return numElements(program_.dimensions(number)) != size;
                                  }),
                   wanted.end());
    }
    Ids helpers = program_.helpers(named[0], opcode(i));
    helpers.resize(std::min<size_t>(helpers.size(), 1));
    nb::object attributes = module_.attributes(i);
    if (nb::len(attributes)) {
      nb::object entries = attributes.attr("items")();
      Ids users = relabels(i) ? relabelled(i, program_.relabellings(named[0])) : Ids();
      for (const Ids *ids : std::initializer_list<const Ids *>{&wanted, &users, &helpers, &named})
        if (!ids->empty() && bears(entries, (*ids)[0]))
          return *ids;
    }
    return !wanted.empty() ? wanted : !helpers.empty() ? helpers : named;
  }

  /// Whether an operation has entries, and all of them are among `entries`.
  bool bears(const nb::object &entries, int64_t number) {
    nb::object own = program_.entries(number);
    return nb::len(own) && own.attr("items")() <= entries;
  }

  /// Whether an instruction may leave all elements in their order.
  bool relabels(size_t i) const { return module_.kind(i).isRelabelled; }

  /// The first operation whose result an instruction that relabels can be, by what it bears.
  Ids relabelled(size_t i, const Ids &candidates) {
    nb::object entries = module_.attributes(i).attr("items")();
    Ids dimensions = module_.dimensions(i);
    for (int64_t number : candidates)
      if (program_.relabels(number) &&
          !nb::cast<bool>(program_.entries(number).attr("items")().attr("isdisjoint")(entries)) &&
          program_.dimensions(number) == dimensions)
        return {number};
    return {};
  }

  /// What an instruction without a name belongs to: the operations that its users came from.
  Ids owner(size_t i) const {
    const Kinds::Kind &kind = module_.kind(i);
    // Several share constants and the like; a step of its own is not shared by accident.
    bool isNobodys = kind.isXlasOwn || (kind.isHeavy && facts_[i].owners.size() > 1);
    return isNobodys ? Ids() : facts_[i].owners;
  }

  void fillFusions() {
    for (size_t i : order_)
      if (module_.kind(i).isFusion)
        if (const Ids &ids = facts_[root(i)].ids; !ids.empty())
          facts_[i].ids = ids;
  }

  /// What a fusion is for: its root, or what its root is made from by moves of XLA's own.
  size_t root(size_t fusion) {
    size_t root = module_.source(fusion);
    while (module_.kind(root).isCopied && facts_[root].ids.empty()) {
      size_t operand = module_.instructions[root].operands.at(0);
      root = module_.source(operand);
    }
    return root;
  }

  /// What is nameless in the body of a reduction, a sort or a scatter belongs to that.
  void fillRegions() {
    std::vector<size_t> callers;
    for (size_t i : order_)
      if (!facts_[i].ids.empty() && !module_.kind(i).isControl)
        callers.push_back(i);
    for (size_t caller : callers)
      for (size_t callee : module_.instructions[caller].called)
        for (size_t i = module_.computations[callee].begin; i < module_.computations[callee].end;
             ++i)
          if (facts_[i].ids.empty() && !module_.kind(i).isXlasOwn)
            facts_[i].ids = facts_[caller].ids;
  }

  /// Relabelled arguments: only tags can tell whose they are.
  void adoptNameless() {
    std::vector<size_t> nameless;
    for (size_t i : order_)
      if (facts_[i].ids.empty() && relabels(i) && !module_.instructions[i].attributes.empty())
        nameless.push_back(i);
    if (nameless.empty())
      return;
    std::vector<bool> isPresent(program_.size());
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

  Kinds kinds_;
  Module module_;
  Program program_;
  Unique unique_;
  std::vector<Facts> facts_;
  std::vector<size_t> order_;
};

nb::tuple join(const nb::bytes &module, nb::handle program, const nb::callable &named,
               nb::handle opcodes) {
  try {
    return Join({module.c_str(), module.size()}, program, opcodes).run(named);
  } catch (const std::out_of_range &) {
    throw nb::value_error(
        "its bytes end too early, or instructions refer to what it does not have");
  }
}

} // namespace

void python::bindHloJoin(nb::module_ &m) {
  m.def("join", &join, nb::arg("module"), nb::arg("program"), nb::arg("named"), nb::arg("opcodes"),
        "Gives for each instruction, in the module's order: the numbers of its operations, its "
        "op_name, its frontend attributes.");
}
