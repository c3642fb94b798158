// SPDX-License-Identifier: Apache-2.0
//
// What does Python see of an HLO module that C++ has read?
#include "hlo.h"

#include "hlotag/hlo/edit.h"
#include "hlotag/hlo/program.h"
#include "hlotag/hlo/sources.h"
#include "hlotag/hlo/work.h"

#include <nanobind/stl/vector.h>

#include <map>
#include <optional>
#include <string>

namespace nb = nanobind;
using namespace hlotag;
using namespace hlotag::python;

namespace {

/// Raises UnicodeDecodeError, which is a ValueError, for bytes that are not UTF-8.
nb::str toText(std::string_view text) {
  PyObject *made = PyUnicode_DecodeUTF8(text.data(), Py_ssize_t(text.size()), nullptr);
  if (!made)
    throw nb::python_error();
  return nb::steal<nb::str>(made);
}

nb::bytes toBytes(std::string_view data) { return nb::bytes(data.data(), data.size()); }

template <class Numbers> nb::tuple toTuple(const Numbers &numbers) {
  nb::tuple made = nb::steal<nb::tuple>(PyTuple_New(Py_ssize_t(numbers.size())));
  for (size_t i = 0; i < numbers.size(); ++i)
    PyTuple_SetItem(made.ptr(), Py_ssize_t(i), nb::int_(numbers[i]).release().ptr());
  return made;
}

/// What Python asks of every instruction.
struct InstructionRow {
  nb::object name, opcode, opName;
  int64_t id;
  nb::tuple operandIds, calledIds;
  nb::dict attributes;
};

struct ComputationRow {
  nb::object name, thread;
  int64_t id;
  size_t root; // Among the instructions.
  nb::list instructions;
};

/// Makes the rows of a module. Equal opcodes and attributes become one object.
class Rows {
public:
  explicit Rows(const hlo::Module &module) : module_(module) {}

  nb::list ofComputations() {
    nb::list rows;
    for (const hlo::Module::Computation &at : module_.computations)
      rows.append(nb::cast(ComputationRow{toText(at.name), toText(at.thread), at.id,
                                          at.root - at.begin, ofInstructions(at)}));
    return rows;
  }

private:
  nb::list ofInstructions(const hlo::Module::Computation &computation) {
    nb::list rows;
    for (size_t i = computation.begin; i < computation.end; ++i)
      rows.append(ofInstruction(i));
    return rows;
  }

  nb::object ofInstruction(size_t i) {
    const hlo::Module::Instruction &at = module_.instructions[i];
    hlo::Numbers operands, called;
    for (size_t operand : at.operands)
      operands.push_back(module_.instructions[operand].id);
    for (size_t callee : at.called)
      called.push_back(module_.computations[callee].id);
    return nb::cast(InstructionRow{toText(at.name), opcode(i), toText(at.opName), at.id,
                                   toTuple(operands), toTuple(called), attributes(i)});
  }

  nb::object opcode(size_t i) {
    nb::object &known = opcodes_[module_.instructions[i].opcode];
    if (!known.is_valid())
      known = toText(module_.kind(i).name);
    return known;
  }

  nb::dict attributes(size_t i) {
    auto [known, isNew] = attributes_.try_emplace(module_.instructions[i].attributes);
    if (isNew)
      for (const auto &[key, value] : module_.attributes(i))
        known->second[toText(key)] = toText(value);
    return known->second;
  }

  const hlo::Module &module_;
  std::map<size_t, nb::object> opcodes_;
  std::map<std::string_view, nb::dict> attributes_;
};

/// The files and lines of a module's instructions. Files become one object each.
class Places {
public:
  explicit Places(const ReadModule &read)
      : sources_(checked([&] { return hlo::Sources(read.module); })) {}

  nb::object of(size_t instruction) {
    hlo::Source source = checked([&] { return sources_.of(instruction); });
    if (source.file.empty())
      return nb::none();
    auto [known, isNew] = files_.try_emplace(source.file);
    if (isNew)
      known->second = toText(source.file);
    return nb::make_tuple(known->second, source.line);
  }

private:
  hlo::Sources sources_;
  std::map<std::string_view, nb::object> files_;
};

nb::list computations(const ReadModule &read) {
  return checked([&] { return Rows(read.module).ofComputations(); });
}

nb::bytes header(const ReadModule &read) {
  return toBytes(checked([&] { return hlo::headerOf(viewOf(read.data)); }));
}

nb::bytes message(const ReadModule &read, size_t number) {
  return toBytes(read.module.instructions.at(number).message);
}

nb::object payload(const ReadModule &read, size_t number) {
  std::optional<std::string_view> text = checked([&] { return read.module.payload(number); });
  return text ? nb::object(toText(*text)) : nb::none();
}

hlo::Program programOf(const ReadModule &read, const hlo::Numbers &numbers) {
  return checked([&] { return hlo::Program::ofInstructions(read.module, numbers); });
}

nb::list measureWork(const ReadModule &read) {
  return checked([&] {
    nb::list made;
    for (const hlo::Work &work : hlo::measureWork(read.module))
      made.append(nb::make_tuple(work.flops, work.bytes, work.effort()));
    return made;
  });
}

nb::bytes withAttributes(const ReadModule &read, const nb::dict &changed) {
  std::map<size_t, hlo::Entries> entries;
  for (auto [number, attributes] : changed)
    entries[nb::cast<size_t>(number)] = toEntries(nb::cast<nb::dict>(attributes));
  return toBytes(checked([&] { return hlo::withAttributes(viewOf(read.data), entries); }));
}

nb::bytes chainFrames(const nb::bytes &data) {
  return toBytes(checked([&] { return hlo::chainFrames(viewOf(data)); }));
}

} // namespace

void python::bindModule(nb::module_ &m) {
  nb::class_<ReadModule>(m, "Module", "An HLO module, read once.")
      .def(nb::init<nb::bytes>(), nb::arg("data"))
      .def("__len__", [](const ReadModule &self) { return self.module.instructions.size(); })
      .def_prop_ro("data", [](const ReadModule &self) { return self.data; })
      .def_prop_ro("name", [](const ReadModule &self) { return toText(self.module.name); })
      .def_prop_ro(
          "entry",
          [](const ReadModule &self) { return self.module.computations[self.module.entry].id; },
          "The id of the computation that runs first.")
      .def("header", &header, "The serialized module without its computations.")
      .def("message", &message, nb::arg("number"), "An instruction's `HloInstructionProto`.")
      .def("payload", &payload, nb::arg("number"), "The text of an instruction's metadata payload.")
      .def(
          "dimensions",
          [](const ReadModule &self, size_t number) {
            return toTuple(self.module.dimensions(number));
          },
          nb::arg("number"), "Those of an instruction's array.")
      .def("computations", &computations, "The rows of the computations, callees first.")
      .def("measure", &measureWork,
           "(flops, bytes, both on one scale) of each instruction, in the module's order.")
      .def("program_of", &programOf, nb::arg("numbers"),
           "Takes those instructions whose number is not -1 for operations.")
      .def("with_attributes", &withAttributes, nb::arg("changed"),
           "The module with other frontend attributes on some instructions, by number.");
  nb::class_<InstructionRow>(m, "InstructionRow", "What every instruction has.")
      .def_ro("name", &InstructionRow::name)
      .def_ro("opcode", &InstructionRow::opcode)
      .def_ro("op_name", &InstructionRow::opName)
      .def_ro("id", &InstructionRow::id)
      .def_ro("operand_ids", &InstructionRow::operandIds)
      .def_ro("called_ids", &InstructionRow::calledIds)
      .def_ro("attributes", &InstructionRow::attributes);
  nb::class_<ComputationRow>(m, "ComputationRow", "A computation and its instructions.")
      .def_ro("name", &ComputationRow::name)
      .def_ro("thread", &ComputationRow::thread)
      .def_ro("id", &ComputationRow::id)
      .def_ro("root", &ComputationRow::root)
      .def_ro("instructions", &ComputationRow::instructions);
  nb::class_<Places>(m, "Places", "The files and lines of a module's instructions.")
      .def(nb::init<const ReadModule &>(), nb::arg("module"), nb::keep_alive<1, 2>())
      .def("of", &Places::of, nb::arg("number"),
           "(file, line) of an instruction; None if XLA has none.");
  m.def("chain_frames", &chainFrames, nb::arg("module"),
        "The module with stack frames that keep their ids when XLA reads it.");
}
