// SPDX-License-Identifier: Apache-2.0
//
// What the HLO stage reads of a StableHLO module, of every operation but the module: asking
// jaxlib's bindings, operation by operation, took most of the stage's time.
#include "hlo.h"

#include "host/host.h"

#include "hlotag/analysis/data_flow.h"
#include "hlotag/analysis/numbering.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

namespace nb = nanobind;
using namespace hlotag;

namespace {

/// Makes one Python object for each handle that is asked for.
template <class Make> class Objects {
public:
  explicit Objects(Make make) : make_(make) {}
  template <class T> const nb::object &operator[](const T &handle) {
    // The null handle, which maps do not take, stands for an attribute that is not there.
    auto [object, isNew] = known_.insert(handle.opaque() ? handle.opaque() : this);
    if (isNew)
      *object = make_(handle);
    return *object;
  }

private:
  Make make_;
  ir::PointerMap<nb::object> known_;
};

nb::dict textEntries(ir::Attribute attribute) {
  nb::dict found;
  if (auto entries = ir::dynCast<ir::DictionaryAttr>(attribute))
    for (ir::NamedAttribute entry : entries)
      if (auto text = ir::dynCast<ir::StringAttr>(entry.value))
        found[python::toStr(entry.name.str())] = python::toStr(text.value());
  return found;
}

/// `accepts` is asked once for each set of entries, as most operations share a few.
bool anyEntries(nb::handle capsule, const nb::callable &accepts) {
  ir::Operation module(python::operationOf(capsule));
  bindings::Scope scope(module.raw());
  ir::PointerMap<bool> asked;
  return !ir::walk(module, [&](ir::Operation op) {
    ir::Attribute entries = op.attr(ir::kFrontendAttributes);
    bool isNew = op != module && entries && asked.insert(entries.opaque()).second;
    bool isAccepted = isNew && nb::cast<bool>(accepts(textEntries(entries)));
    return isAccepted ? ir::WalkResult::Interrupt : ir::WalkResult::Advance;
  });
}

nb::tuple numberOperations(nb::handle capsule, std::string_view token, bool every) {
  MlirOperation module = python::operationOf(capsule);
  bindings::Scope scope(module);
  ir::OpList operations{ir::Operation(module)};
  ir::OpIds ids(operations[0].op.context());
  Objects text([](ir::Identifier name) { return python::toStr(name.str()); });
  Objects entries(textEntries);
  ir::PointerMap<size_t> known;
  nb::list names, places, attributes;
  for (const ir::OpList::Entry &entry : operations) {
    if (entry.op == operations[0].op)
      continue;
    names.append(text[entry.name]);
    attributes.append(entries[entry.op.attr(ir::kFrontendAttributes)]);
    ir::Location location = entry.op.location();
    auto named = ir::dynCast<ir::NameLoc>(location);
    auto [place, isNew] = known.insert((named ? named.child() : location).opaque());
    if (isNew)
      *place = known.size();
    places.append(*place);
  }
  return nb::make_tuple(names, places, attributes,
                        analysis::numberNames(operations, ids, token, every));
}

/// The type of the first result, null if there is none.
ir::Attribute typeOf(ir::Operation op) {
  ir::Operation::Results results = op.results();
  return results.empty() ? ir::Attribute() : capi::fn().mlirTypeAttrGet(results[0].type());
}

nb::tuple dataFlow(nb::handle capsule) {
  MlirOperation module = python::operationOf(capsule);
  bindings::Scope scope(module);
  ir::OpList operations{ir::Operation(module)};
  ir::OpIds ids(operations[0].op.context());
  analysis::DataFlow flow(operations, ids);
  auto numbersOf = [](const std::vector<analysis::DataFlow::Definition> &definitions) {
    std::vector<std::optional<size_t>> numbers(definitions.size());
    std::transform(definitions.begin(), definitions.end(), numbers.begin(),
                   [](const analysis::DataFlow::Definition &made) { return made.op; });
    return numbers;
  };
  Objects text([](ir::Attribute type) { return python::toStr(type ? type.str() : ""); });
  std::vector<std::vector<std::optional<size_t>>> operands;
  nb::list types;
  for (size_t number = 0; number < flow.size(); ++number) {
    operands.push_back(numbersOf(flow.operands(number)));
    types.append(text[typeOf(operations[number + 1].op)]);
  }
  return nb::make_tuple(operands, types, flow.values(), numbersOf(flow.results()));
}

} // namespace

nb::object python::toStr(std::string_view text) {
  PyObject *made = PyUnicode_DecodeUTF8(text.data(), Py_ssize_t(text.size()), "surrogateescape");
  if (!made)
    throw nb::python_error();
  return nb::steal(made);
}

MlirOperation python::operationOf(nb::handle capsule) {
  if (!capi::isInstalled())
    throw std::runtime_error("the table of MLIR functions is not installed");
  void *pointer = PyCapsule_GetPointer(capsule.ptr(), "jaxlib.mlir.ir.Operation._CAPIPtr");
  if (!pointer)
    throw nb::python_error();
  return {pointer};
}

void python::bindHlo(nb::module_ &m) {
  m.def("any_entries", &anyEntries, nb::arg("module"), nb::arg("accepts"),
        "Whether an operation has text entries that are accepted.");
  m.def("number_operations", &numberOperations, nb::arg("module"), nb::arg("token"), nb::kw_only(),
        nb::arg("every"),
        "Numbers the names of operations. Gives by number: names, a number for each location "
        "beneath the name, text entries; and (helper, number that it got instead of its own).");
  m.def("data_flow", &dataFlow, nb::arg("module"),
        "Gives by number: what computes the operands, the type of the first result, and a number "
        "that equal operations share; and what computes the program's results.");
}
