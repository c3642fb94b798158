// SPDX-License-Identifier: Apache-2.0
//
// Which operations of the program an HLO instruction came from: by the numbers in names, and by
// data flow where they fail. Here and not in Python since it asks about every instruction, and a
// compilation waits for the answer; what it wants to know of few operations (entries,
// dimensions, operands) it asks the objects in `hlotag.hlo`.
#include "hlo.h"
#include "wire.h"

#include "hlotag/ir/pointer_map.h"

#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace nb = nanobind;
using namespace hlotag;

namespace {

/// Numbers of operations; where one may be missing, `kNone`.
using Ids = std::vector<int64_t>;
constexpr int64_t kNone = -1;

Ids toNumbers(nb::handle sequence) {
  Ids numbers;
  for (nb::handle number : nb::tuple(sequence)) // Tuples are gone through without an iterator.
    numbers.push_back(number.is_none() ? kNone : nb::cast<int64_t>(number));
  return numbers;
}

/// An index by numbers that a module gives; -1, which XLA gives nothing, is in none.
class ById {
public:
  void add(int64_t id, size_t index) {
    if (id == -1)
      throw std::out_of_range("an id");
    *byId_.insert(key(id)).first = index;
  }
  size_t operator[](int64_t id) const {
    const size_t *found = id == -1 ? nullptr : byId_.find(key(id));
    if (!found)
      throw std::out_of_range("an id");
    return *found;
  }

private:
  static const void *key(int64_t id) { return reinterpret_cast<const void *>(id + 1); }
  ir::PointerMap<size_t> byId_;
};

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

/// Opcodes and names of operations, in one table: `hlotag.hlo.opcodes` says what they are.
class Kinds {
public:
  struct Kind {
    nb::object text;
    size_t opcode; // The kind that an operation is translated to; an opcode's own.
    bool isMove, isRelabelling, isHeavy, isXlasOwn, isFusion, isCall, isParameter, isElement;
    bool isTuple, isRelabelled, isCopied, isControl;
    std::vector<signed char> mayBe; // By opcode; -1 where nobody asked.
  };

  explicit Kinds(nb::handle opcodes)
      : traits_(opcodes.attr("traits")), mayBe_(opcodes.attr("may_be")) {}

  const Kind &operator[](size_t kind) const { return kinds_[kind]; }

  size_t of(std::string_view view) {
    nb::object text = python::toStr(view);
    if (PyObject *known = PyDict_GetItemWithError(indices_.ptr(), text.ptr()))
      return PyLong_AsSize_t(known);
    size_t index = kinds_.size();
    indices_[text] = index;
    auto isOne = [&](std::initializer_list<std::string_view> of) {
      return std::find(of.begin(), of.end(), view) != of.end();
    };
    nb::tuple traits(traits_(text));
    kinds_.push_back({nb::borrow(text),
                      index,
                      nb::cast<bool>(traits[1]),
                      nb::cast<bool>(traits[2]),
                      nb::cast<bool>(traits[3]),
                      nb::cast<bool>(traits[4]),
                      isOne({"fusion"}),
                      isOne({"call"}),
                      isOne({"parameter"}),
                      isOne({"get-tuple-element"}),
                      isOne({"tuple"}),
                      isOne({"bitcast", "reshape"}),
                      isOne({"bitcast", "copy"}),
                      isOne({"fusion", "while", "conditional", "call"}),
                      {}});
    size_t translated = of(nb::cast<std::string_view>(traits[0]));
    kinds_[index].opcode = translated;
    return index;
  }

  bool mayBe(size_t name, size_t opcode) {
    std::vector<signed char> &known = kinds_[name].mayBe;
    if (known.size() <= opcode)
      known.resize(kinds_.size(), -1);
    if (known[opcode] < 0)
      known[opcode] = nb::cast<bool>(mayBe_(kinds_[name].text, kinds_[opcode].text));
    return known[opcode];
  }

private:
  nb::object traits_, mayBe_;
  nb::dict indices_;
  std::vector<Kind> kinds_;
};

/// `hlotag.hlo.graph.Program`; what it says is asked once.
class Program {
public:
  Program(nb::handle program, Kinds &kinds)
      : kinds_(kinds), name_(program.attr("name")), operands_(program.attr("operands")),
        entries_(program.attr("entries")), dimensions_(program.attr("dimensions")),
        helpers_(program.attr("helpers").attr("get")), results_(program.attr("results")),
        operations_(nb::len(program)) {}

  size_t size() const { return operations_.size(); }

  const Kinds::Kind &kind(int64_t number) { return kinds_[kindIndex(number)]; }
  /// Whether XLA makes instructions of this opcode from an operation, other than by moving.
  bool becomes(int64_t number, size_t opcode) { return kinds_.mayBe(kindIndex(number), opcode); }
  const Ids &operands(int64_t number) {
    std::optional<Ids> &known = operations_.at(size_t(number)).operands;
    if (!known)
      known = toNumbers(operands_(number));
    return *known;
  }
  /// Those of the users that leave all elements in their order.
  const Ids &relabellings(int64_t number) {
    if (relabellings_.empty()) {
      relabellings_.resize(size());
      for (size_t user = 0; user < size(); ++user)
        if (relabels(int64_t(user)))
          for (int64_t operand : operands(int64_t(user)))
            if (operand != kNone)
              relabellings_.at(size_t(operand)).push_back(int64_t(user));
    }
    return relabellings_.at(size_t(number));
  }
  bool relabels(int64_t number) { return kinds_[kind(number).opcode].isRelabelling; }
  nb::object entries(int64_t number) { return entries_(number); }
  Ids dimensions(int64_t number) { return toNumbers(dimensions_(number)); }
  Ids helpers(int64_t number, size_t opcode) {
    nb::object found = helpers_(number);
    return found.is_none() ? Ids() : select(toNumbers(found), opcode);
  }
  Ids results() { return toNumbers(results_()); }

  /// Those of some operations that become `opcode`.
  Ids select(const Ids &numbers, size_t opcode) {
    Ids found;
    for (int64_t number : numbers)
      if (becomes(number, opcode))
        found.push_back(number);
    return found;
  }

  /// The operation that becomes `opcode`: this one, or the one whose result it and others before
  /// it only move.
  int64_t source(int64_t number, size_t opcode) {
    for (int step = 0; step < 16; ++step) {
      if (number == kNone || becomes(number, opcode))
        return number;
      if (!kinds_[kind(number).opcode].isMove)
        return kNone;
      const Ids &operands = this->operands(number);
      number = operands.empty() ? kNone : operands[0];
    }
    return kNone;
  }

private:
  struct Operation {
    std::optional<size_t> kind;
    std::optional<Ids> operands;
  };

  size_t kindIndex(int64_t number) {
    std::optional<size_t> &kind = operations_.at(size_t(number)).kind;
    if (!kind) {
      nb::object name = name_(number);
      kind = kinds_.of(nb::cast<std::string_view>(name));
    }
    return *kind;
  }

  Kinds &kinds_;
  nb::object name_, operands_, entries_, dimensions_, helpers_, results_;
  std::vector<Operation> operations_;
  std::vector<Ids> relabellings_;
};

/// An HLO module, and its data flow as if nothing were fused.
class Module {
public:
  struct Instruction {
    std::string_view shape, attributes; // Messages.
    size_t opcode, computation;
    std::vector<size_t> operands;
    std::vector<size_t> called;
    size_t index; // Of a parameter, or of an element of a tuple.
    nb::object opName;
  };
  struct Computation {
    size_t begin, end, root;
    std::optional<size_t> fusion, onlyCall;
  };

  /// `data` is an `HloModuleProto`.
  Module(std::string_view data, Kinds &kinds) : kinds_(kinds) {
    int64_t entryId = 0;
    for (wire::Message message(data); message.next();) {
      if (message.field() == 3)
        readComputation(message.bytes());
      else if (message.field() == 6)
        entryId = message.number();
    }
    std::vector<int> numCalls(computations.size());
    for (size_t i = 0; i < instructions.size(); ++i) {
      const Kinds::Kind &kind = this->kind(i);
      if (!kind.isFusion && !kind.isCall)
        continue;
      size_t callee = instructions[i].called.at(0);
      if (kind.isFusion)
        computations[callee].fusion = i;
      else
        computations[callee].onlyCall = ++numCalls[callee] == 1 ? std::optional(i) : std::nullopt;
    }
    entry = byId_[entryId];
  }

  const Kinds::Kind &kind(size_t instruction) const {
    return kinds_[instructions[instruction].opcode];
  }

  /// The frontend attributes; of equal bytes, one object.
  nb::object attributes(size_t instruction) {
    std::string_view data = instructions[instruction].attributes;
    nb::bytes key(data.data(), data.size());
    if (PyObject *known = PyDict_GetItemWithError(attributes_.ptr(), key.ptr()))
      return nb::borrow(known);
    nb::dict entries;
    for (wire::Message map(data); map.next();)
      if (map.field() == 1) {
        std::string_view halves[2];
        for (wire::Message entry(map.bytes()); entry.next();)
          if (entry.field() == 1 || entry.field() == 2)
            halves[entry.field() - 1] = entry.bytes();
        entries[python::toStr(halves[0])] = python::toStr(halves[1]);
      }
    attributes_[key] = entries;
    return entries;
  }

  Ids dimensions(size_t instruction) const {
    Ids dimensions;
    for (wire::Message shape(instructions[instruction].shape); shape.next();)
      if (shape.field() == 3)
        shape.appendNumbers(dimensions);
    return dimensions;
  }

  /// What computes the value that an instruction hands on: through parameters and results of
  /// fusions and calls.
  size_t source(size_t instruction, int depth = 0) {
    if (depth == 1000)
      throw std::out_of_range("tuples within tuples");
    while (true) {
      const Kinds::Kind &kind = this->kind(instruction);
      const Computation &in = computations[instructions[instruction].computation];
      std::optional<size_t> caller = in.onlyCall ? in.onlyCall : in.fusion;
      if (kind.isParameter && caller) {
        instruction = instructions[*caller].operands.at(instructions[instruction].index);
      } else if (kind.isFusion || kind.isCall) {
        instruction = computations[instructions[instruction].called[0]].root;
      } else if (kind.isElement) {
        size_t made = source(instructions[instruction].operands.at(0), depth + 1);
        if (!this->kind(made).isTuple)
          return instruction;
        instruction = instructions[made].operands.at(instructions[instruction].index);
      } else {
        return instruction;
      }
    }
  }

  /// All instructions, users before their operands; of fused computations at the place of the
  /// fusion.
  std::vector<size_t> usersFirst() {
    std::vector<size_t> order;
    std::vector<std::pair<size_t, size_t>> pending; // Computations, and how far they are done.
    for (size_t c = computations.size(); c-- > 0;) {
      if (computations[c].fusion)
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
        // A computation is that of one fusion.
        if (!kind(i).isFusion)
          continue;
        size_t callee = instructions[i].called[0];
        if (computations[callee].fusion == i)
          pending.emplace_back(callee, computations[callee].end);
      }
    }
    return order;
  }

  std::vector<Instruction> instructions;
  std::vector<Computation> computations;
  size_t entry = 0;

private:
  void readComputation(std::string_view data) {
    size_t begin = instructions.size();
    int64_t id = 0, root = 0;
    ById byId;
    for (wire::Message message(data); message.next();) {
      if (message.field() == 2)
        readInstruction(message.bytes(), byId);
      else if (message.field() == 5)
        id = message.number();
      else if (message.field() == 6)
        root = message.number();
    }
    byId_.add(id, computations.size());
    computations.push_back({begin, instructions.size(), byId[root], std::nullopt, std::nullopt});
  }

  void readInstruction(std::string_view data, ById &byId) {
    Instruction made{{}, {}, 0, computations.size(), {}, {}, 0, {}};
    std::string_view opcode, metadata, opName;
    int64_t id = 0;
    Ids operands, called;
    for (wire::Message message(data); message.next();) {
      switch (message.field()) {
      case 2:
        opcode = message.bytes();
        break;
      case 3:
        made.shape = message.bytes();
        break;
      case 7:
        metadata = message.bytes();
        break;
      case 9:  // parameter_number
      case 13: // tuple_index
        made.index = size_t(message.number());
        break;
      case 35:
        id = message.number();
        break;
      case 36:
        message.appendNumbers(operands);
        break;
      case 38:
        message.appendNumbers(called);
        break;
      case 68:
        made.attributes = message.bytes();
        break;
      default: // nothing that this asks for
        break;
      }
    }
    for (wire::Message message(metadata); message.next();)
      if (message.field() == 2)
        opName = message.bytes();
    if (std::any_of(opcode.begin(), opcode.end(), [](char letter) { return letter < 0; }))
      throw std::out_of_range("an opcode");
    made.opName = python::toStr(opName);
    made.opcode = kinds_.of(opcode);
    // Operands come before their users, and computations before their callers.
    for (int64_t operand : operands)
      made.operands.push_back(byId[operand]);
    for (int64_t computation : called)
      made.called.push_back(byId_[computation]);
    byId.add(id, instructions.size());
    instructions.push_back(std::move(made));
  }

  Kinds &kinds_;
  ById byId_;
  nb::dict attributes_;
};

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
