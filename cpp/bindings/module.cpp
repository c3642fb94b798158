// SPDX-License-Identifier: Apache-2.0
//
// Which functions of the C++ side does Python see? The module hlotag._core: conversions only.
#include "hlo.h"
#include "python_pass.h"
#include "trace_binds.h"

#include "hlotag/analysis/name_path.h"
#include "hlotag/analysis/provenance.h"
#include "hlotag/capi/table.h"
#include "hlotag/ir/nesting.h"
#include "hlotag/pass/pipeline.h"
#include "hlotag/pass/registry.h"
#include "hlotag/pass/run.h"
#include "hlotag/passes/passes.h"
#include "hlotag/plugin/loader.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace hlotag;

namespace {

nb::list toList(const std::vector<std::string_view> &names) {
  nb::list list;
  for (std::string_view name : names)
    list.append(nb::str(name.data(), name.size()));
  return list;
}

/// `pythonRun` is null, None or a PythonRun.
pass::ValueCheck valueCheckOf(nb::handle pythonRun) {
  if (!pythonRun.is_valid() || pythonRun.is_none())
    return {};
  return [pythonRun](std::string_view key, std::string_view value) {
    nb::gil_scoped_acquire acquire;
    auto decode = [](std::string_view text) {
      return nb::steal(PyUnicode_DecodeUTF8(text.data(), Py_ssize_t(text.size()), "replace"));
    };
    return nb::cast<std::string>(pythonRun.attr("why_illegal")(decode(key), decode(value)));
  };
}

/// A pass of ours with its options, or the text of an element for MLIR.
using Element = std::pair<std::string, std::optional<std::map<std::string, pass::OptionValue>>>;

pass::RunResult run(nb::handle module, const std::vector<Element> &elements,
                    pass::RunOptions options, nb::handle pythonRun, nb::handle spare) {
  options.whyIllegal = valueCheckOf(pythonRun);
  ir::Operation operation = python::operationOf(module);
  ir::Operation spareOperation = spare.is_none() ? ir::Operation() : python::operationOf(spare);
  python::RunScope scope(pythonRun);
  // This locks the registry. A process forks under Python's lock, so never in the middle of it.
  pass::Pipeline pipeline;
  for (const auto &[name, values] : elements)
    pipeline.push_back(values ? pass::makeElement(name, {values->begin(), values->end()})
                              : pass::PipelineElement{nullptr, name});
  // The caller holds references to the modules, and C++ passes need no Python.
  nb::gil_scoped_release release;
  return pass::run(operation, pipeline, options, spareOperation);
}

/// Returns (scope, phase, file, line) of every operation in the module, in the order of its
/// text.
nb::list provenance(nb::handle pythonModule) {
  ir::Operation module = python::operationOf(pythonModule);
  ir::OpList operations(module);
  analysis::Provenance provenance(operations);
  nb::list result;
  for (const ir::OpList::Item &item : operations) {
    if (item.op == module)
      continue;
    const analysis::Origin &origin = provenance.of(item.op);
    std::string name = analysis::namedScopes(provenance.paths().text(origin.scope));
    std::string_view phase =
        analysis::phaseOf(provenance.paths().text(origin.transforms), origin.rematted);
    std::string_view file = origin.source ? origin.source.filename().str() : std::string_view();
    result.append(nb::make_tuple(nb::str(name.data(), name.size()), phase,
                                 nb::str(file.data(), file.size()),
                                 origin.source ? origin.source.line() : 0));
  }
  return result;
}

nb::dict describe(const pass::Pass &pass) {
  nb::list options;
  for (const pass::OptionBase *option : pass.options()) {
    nb::dict entry;
    entry["name"] = option->name();
    entry["type"] = option->type();
    entry["default"] = option->initial();
    entry["description"] = option->description();
    options.append(entry);
  }
  nb::dict result;
  result["argument"] = pass.info().argument;
  result["name"] = pass.info().name;
  result["summary"] = pass.info().summary;
  result["description"] = pass.info().description;
  result["options"] = options;
  return result;
}

nb::list listPasses() {
  nb::list passes;
  for (const auto &pass : pass::allPasses())
    passes.append(describe(*pass));
  return passes;
}

void bindDiagnostic(nb::module_ &m) {
  using ir::Diagnostic;
  nb::class_<Diagnostic>(m, "Diagnostic", "One report of a pass or of MLIR.")
      .def_prop_ro("severity",
                   [](const Diagnostic &d) { return std::string(ir::toString(d.severity)); })
      .def_ro("file", &Diagnostic::file, "Innermost source file, or empty.")
      .def_ro("line", &Diagnostic::line)
      .def_ro("column", &Diagnostic::column)
      .def_ro("location", &Diagnostic::location)
      .def_ro("message", &Diagnostic::message)
      .def_ro("notes", &Diagnostic::notes)
      .def("__str__", &Diagnostic::str)
      .def("__repr__", [](const Diagnostic &d) { return "<Diagnostic " + d.str() + ">"; });
}

void bindRunResult(nb::module_ &m) {
  using pass::RunResult;
  nb::class_<RunResult>(m, "RunResult", "What a run did.")
      .def_ro("ok", &RunResult::ok)
      .def_ro("failing_pass", &RunResult::failingPass)
      .def_ro("diagnostics", &RunResult::diagnostics)
      .def_ro("changed_passes", &RunResult::changedPasses)
      .def_ro("num_changes", &RunResult::numChanges);
}

void bindRun(nb::module_ &m) {
  using pass::RunOptions;
  nb::class_<RunOptions>(m, "RunOptions", "What a caller chooses about a run.")
      .def(nb::init<>())
      .def_rw("verify", &RunOptions::verify)
      .def_rw("print_before", &RunOptions::printBefore)
      .def_rw("print_after", &RunOptions::printAfter)
      .def_rw("print_after_change", &RunOptions::printAfterChange)
      .def_rw("print_after_failure", &RunOptions::printAfterFailure)
      .def_rw("debug_origins", &RunOptions::debugOrigins)
      .def_rw("keep_entry", &RunOptions::keepEntry)
      .def_rw("source", &RunOptions::source)
      .def_rw("timing", &RunOptions::timing)
      .def_rw("print_module_scope", &RunOptions::printModuleScope)
      .def_rw("print_debug_info", &RunOptions::printDebugInfo)
      .def_rw("print_local_scope", &RunOptions::printLocalScope)
      .def_rw("print_generic", &RunOptions::printGeneric);
  m.def(
      "run", &run, nb::arg("module"), nb::arg("pipeline"), nb::arg("options") = RunOptions(),
      nb::arg("python_run") = nb::none(), nb::arg("spare") = nb::none(),
      "Runs passes on an `ir.Module`: (name, values of options), or (text for MLIR, None). Python "
      "passes get `python_run`. If there are passes in Python or of others, `spare` is an empty "
      "module, which then owns the operations that the module lost.");
}

void bindLoading(nb::module_ &m) {
  m.def("required_symbols", [] { return toList(capi::requiredNames()); });
  m.def(
      "install",
      [](const std::map<std::string, uintptr_t> &addresses) {
        return capi::install([&](std::string_view name) {
          auto found = addresses.find(std::string(name));
          return found == addresses.end() ? nullptr : reinterpret_cast<void *>(found->second);
        });
      },
      nb::arg("addresses"), "Fills the table; returns the names of functions that are missing.");
  m.def("is_installed", &capi::isInstalled);
  m.def(
      "table_address", [] { return reinterpret_cast<uintptr_t>(&capi::fn()); },
      "The address of the table, which never changes, for C++ built against hlotag's headers.");
}

void bindPasses(nb::module_ &m) {
  nb::exception<plugin::PluginError> pluginError(m, "PluginError", PyExc_RuntimeError);
  m.def("load_plugin", &plugin::load, nb::arg("path"), "Returns the names of its passes.");
  m.def("list_passes", &listPasses);
}

void bindAnalyses(nb::module_ &m) {
  m.def("nesting_depth", &ir::nestingDepth, nb::arg("text"),
        nb::call_guard<nb::gil_scoped_release>(), "The depth of nested brackets in MLIR text.");
  m.def(
      "name_path",
      [](std::string_view name) {
        analysis::NamePath path = analysis::parseName(name);
        return nb::make_tuple(analysis::namedScopes(path.scope()),
                              analysis::phaseOf(path.transforms, path.rematted));
      },
      nb::arg("name"),
      "The scopes in a name of JAX's, and the phase: empty if not differentiated.");
  m.def("provenance", &provenance, nb::arg("module"),
        "The origin of each operation: (scope, phase, file, line).");
}

} // namespace

NB_MODULE(_core, m) {
  m.doc() = "hlotag's MLIR passes.";
  // A release does not warn about objects that users keep until the process ends.
#ifdef HLOTAG_RELEASE
  nb::set_leak_warnings(false);
#endif
  passes::registerAllPasses();
  // Python's PipelineError is made from ValueError, so that it has one definition.
  nb::register_exception_translator([](const std::exception_ptr &pointer, void *) {
    try {
      std::rethrow_exception(pointer);
    } catch (const pass::PipelineError &error) {
      PyErr_SetString(PyExc_ValueError, error.what());
    }
  });
  bindLoading(m);
  bindPasses(m);
  bindAnalyses(m);
  bindDiagnostic(m);
  bindRunResult(m);
  bindRun(m);
  python::bindPythonPasses(m);
  python::bindHlo(m);
  python::defineBinds(m);
  python::bindWrappedMethods(m);
}
