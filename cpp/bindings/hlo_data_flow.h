// SPDX-License-Identifier: Apache-2.0
//
// What the join goes through: the operations of a program, and the instructions of an HLO module,
// each with who computes what.
#pragma once

#include "hlo.h"
#include "wire.h"

#include "hlotag/ir/flat_map.h"

#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace hlotag::python {

namespace nb = nanobind;

/// Numbers of operations; where one may be missing, `kNone`.
using Ids = std::vector<int64_t>;
inline constexpr int64_t kNone = -1;

inline Ids toNumbers(nb::handle sequence) {
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
    nb::object text = toStr(view);
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
        entries[toStr(halves[0])] = toStr(halves[1]);
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
    made.opName = toStr(opName);
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

} // namespace hlotag::python
