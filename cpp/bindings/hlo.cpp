// SPDX-License-Identifier: Apache-2.0
//
// Which functions does Python's HLO pass call? Python decides the
// entries of instructions.
#include "hlo.h"

#include "hlotag/hlo/join.h"
#include "hlotag/hlo/restore.h"
#include "hlotag/ir/ir.h"

#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

namespace nb = nanobind;
using namespace hlotag;
using namespace hlotag::python;
using hlo::Program;

namespace {

/// A missing number becomes None.
nb::tuple toTuple(const hlo::Numbers &ids) {
  nb::list made;
  for (int64_t id : ids)
    made.append(id == hlo::kNone ? nb::none() : nb::object(nb::int_(id)));
  return nb::tuple(made);
}

nb::list toTuples(const std::vector<hlo::Numbers> &all) {
  nb::list made;
  for (const hlo::Numbers &ids : all)
    made.append(toTuple(ids));
  return made;
}

nb::object toSet(const std::vector<std::string_view> &opcodes) {
  nb::set made;
  for (std::string_view opcode : opcodes)
    made.add(toStr(opcode));
  return nb::frozenset(made);
}

/// `hlotag.hlo.restore.Rules`.
class Rules final : public hlo::Rules {
public:
  explicit Rules(nb::handle rules)
      : entriesFor_(rules.attr("entries_for")), isRepeated_(rules.attr("is_repeated")),
        labelFor_(rules.attr("label_for")) {}

  hlo::Entries entriesFor(const Case &instruction) override {
    auto found = nb::cast<nb::dict>(
        entriesFor_(toDict(instruction.before), instruction.own, instruction.callers,
                    instruction.isOperation, instruction.isCombined,
                    nb::arg("inside") =
                        instruction.inside ? nb::object(toDict(*instruction.inside)) : nb::none()));
    return toEntries(found);
  }
  bool isRepeated(std::string_view key) override { return nb::cast<bool>(isRepeated_(toStr(key))); }
  std::string labelFor(const hlo::Entries &entries) override {
    return toString(labelFor_(toDict(entries)));
  }

private:
  nb::object entriesFor_, isRepeated_, labelFor_;
};

bool anyEntries(nb::handle module, const nb::callable &accepts) {
  return hlo::anyEntries(operationOf(module), [&](const hlo::Entries &entries) {
    return nb::cast<bool>(accepts(toDict(entries)));
  });
}

Program numberOperations(nb::handle module, std::string_view token, bool every) {
  return Program::ofOperations(operationOf(module).raw(), token, every);
}

nb::list join(const Program &program, const ReadModule &read, nb::handle named,
              std::string_view without) {
  return checked([&] {
    const hlo::Module &module = read.module;
    if (named.is_none()) {
      std::vector<hlo::Numbers> ids =
          hlo::join(module, program, hlo::readNames(module, program), without);
      if (without != hlo::kEqual)
        hlo::addEqual(ids, program);
      return toTuples(ids);
    }
    std::vector<hlo::NumberedName> names;
    for (nb::handle numbers : named) {
      names.push_back({nb::cast<hlo::Numbers>(numbers), {}});
      hlo::setCallsApart(names.back(), program);
    }
    return toTuples(hlo::join(module, program, names));
  });
}

nb::bytes restore(const Program &program, const nb::bytes &data, nb::handle rules,
                  bool keepsNumbers) {
  std::string restored = checked([&] {
    Rules said(rules);
    return hlo::restore(viewOf(data), program, said, keepsNumbers);
  });
  return nb::bytes(restored.data(), restored.size());
}

nb::tuple readName(const Program &program, std::string_view name) {
  hlo::NumberedName read = hlo::readNumbers(name, program.token);
  return nb::make_tuple(
      toTuple(read.numbers), toTuple(read.callers),
      toStr(hlo::removeNumbers(name, program.token, program.areAtOnePlace(read.numbers))));
}

nb::list entries(const Program &program) {
  nb::list made;
  for (const hlo::Entries &entries : program.entries)
    made.append(toDict(entries));
  return made;
}

nb::tuple operation(const Program &program, size_t number) {
  const Program::Operation &found = program.operations.at(number);
  return nb::make_tuple(toStr(program.kinds[found.kind].name), found.entries,
                        toTuple(found.operands), toTuple(found.dimensions), found.value);
}

} // namespace

nb::object python::toStr(std::string_view text) {
  PyObject *made = PyUnicode_DecodeUTF8(text.data(), Py_ssize_t(text.size()), "surrogateescape");
  if (!made)
    throw nb::python_error();
  return nb::steal(made);
}

std::string python::toString(nb::handle text) {
  nb::object bytes = nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogateescape"));
  if (!bytes)
    throw nb::python_error();
  return {PyBytes_AsString(bytes.ptr()), size_t(PyBytes_Size(bytes.ptr()))};
}

nb::dict python::toDict(const hlo::Entries &entries) {
  nb::dict made;
  for (const auto &[key, value] : entries)
    made[toStr(key)] = toStr(value);
  return made;
}

hlo::Entries python::toEntries(const nb::dict &entries) {
  hlo::Entries made;
  for (auto [key, value] : entries)
    made[toString(key)] = toString(value);
  return made;
}

ir::Operation python::operationOf(nb::handle module) {
  if (!capi::isInstalled())
    throw std::runtime_error("the table of MLIR functions is not installed");
  nb::object capsule = nb::module_::import_("hlotag._compat.bindings").attr("capsule")(module);
  void *pointer = PyCapsule_GetPointer(capsule.ptr(), "jaxlib.mlir.ir.Operation._CAPIPtr");
  if (!pointer)
    throw nb::python_error();
  return MlirOperation{pointer};
}

static void bindOpcodes(nb::module_ &m) {
  using hlo::Kind;
  m.def("kind_of", [](std::string_view opcode) { return int(Kind(opcode).cost); });
  m.def("opcode_of", [](std::string_view name) { return toStr(Kind(name).becomes); });
  m.def("may_be", [](std::string_view name, std::string_view opcode) {
    return hlo::mayBe(Kind(name), Kind(opcode));
  });
  m.def("role_of", [](std::string_view name, std::string_view opcode) {
    return int(hlo::roleOf(Kind(name), Kind(opcode)));
  });
  m.def("replaces", [](std::string_view name, std::string_view opcode) {
    return hlo::replaces(Kind(name), Kind(opcode));
  });
  m.attr("COLLECTIVES") = toSet(hlo::opcodesThat(hlo::kCollective));
  m.attr("MOVES") = toSet(hlo::opcodesThat(hlo::kMoves));
  m.attr("RELABELLING") = toSet(hlo::opcodesThat(hlo::kRelabels));
}

void python::bindHlo(nb::module_ &m) {
  bindOpcodes(m);
  bindModule(m);
  m.def("any_entries", &anyEntries, nb::arg("module"), nb::arg("accepts"),
        "Whether an operation has text entries that are accepted.");
  nb::class_<Program>(m, "Program", "The operations of a program, numbered.")
      .def("__len__", [](const Program &self) { return self.operations.size(); })
      .def("__getitem__", &operation,
           "(name with dialect, index into `entries`, operations that compute its operands or None "
           "for an argument, dimensions of its first result, number shared by operations with "
           "equal values).")
      .def("entries", &entries, "The distinct frontend attributes of operations.")
      .def(
          "results", [](const Program &self) { return toTuple(self.results); },
          "The operations that compute the program's results.")
      .def("read_name", &readName, nb::arg("op_name"),
           "(numbers in a name, numbers of callers, name without numbers).")
      .def(
          "join", &join, nb::arg("module"), nb::arg("named") = nb::none(), nb::kw_only(),
          nb::arg("without") = "",
          "The numbers of each instruction's operations, in the module's order. With `named`, uses "
          "these instead of names, and ignores operations that only have equal values. The rule "
          "named `without` is left out.")
      .def("restore", &restore, nb::arg("module"), nb::arg("rules"), nb::kw_only(),
           nb::arg("keeps_numbers"),
           "The module with the entries from `rules`; without numbers, unless it keeps them.");
  m.def("join_rules", &hlo::joinRuleNames, "The names of the rules of `Program.join`, in order.");
  m.def(
      "without_numbers",
      [](std::string_view name) { return toStr(hlo::removeNumbers(name, "", false)); },
      nb::arg("name"), "An instruction's name as XLA writes it without the numbers of any module.");
  m.def("number_operations", &numberOperations, nb::arg("module"), nb::arg("token"), nb::kw_only(),
        nb::arg("every"), "Numbers the names of operations.");
}
