// SPDX-License-Identifier: Apache-2.0
//
// hlotag._core: what Python sees of the C++ side. No logic lives here.
#include "hlo.h"
#include "host/host.h"
#include "python_pass.h"
#include "trace_groups.h"

#include "hlotag/analysis/key_values.h"
#include "hlotag/analysis/name_path.h"
#include "hlotag/analysis/provenance.h"
#include "hlotag/capi/conformance.h"
#include "hlotag/capi/loader.h"
#include "hlotag/capi/table.h"
#include "hlotag/ir/location.h"
#include "hlotag/ir/nesting.h"
#include "hlotag/pass/pipeline.h"
#include "hlotag/pass/plugin_loader.h"
#include "hlotag/pass/registry.h"
#include "hlotag/pass/run.h"
#include "hlotag/passes/passes.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
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

std::vector<std::string> install(const std::string &path,
                                 const std::map<std::string, uint64_t> &offsets) {
  auto library = capi::findLoaded(path);
  if (!library)
    throw capi::LoaderError(path + ": this process has not loaded it");
  // An offset outside of the library's code (a stale or foreign table) counts as missing.
  std::map<std::string, uint64_t> inside;
  for (const auto &[name, offset] : offsets)
    if (library->isExecutable(offset))
      inside.emplace(name, offset);
  capi::checkLoadedFrom(path, *library, inside);
  return capi::install([&](std::string_view name) -> void * {
    auto found = inside.find(std::string(name));
    return found == inside.end() ? nullptr
                                 : reinterpret_cast<void *>(library->base + found->second);
  });
}

std::string notUtf8(const std::string &where) {
  return "the module has text that is not UTF-8 (" + where +
         "), which cannot be read through jaxlib's Python bindings";
}

/// The same with the interpreter's lock held, as everything goes through Python.
pass::RunResult runThroughBindings(MlirOperation module, std::string_view text,
                                   const pass::RunOptions &options) {
  bindings::Scope scope(module);
  pass::Pipeline pipeline = pass::Pipeline::parse(text);
  auto undecodable = bindings::findUndecodable(module);
  if (!undecodable)
    return pass::run(module, pipeline, options);
  pass::RunResult result;
  result.ok = false;
  result.diagnostics.push_back(ir::makeDiagnostic(
      ir::Severity::Error, ir::Operation(module).location(), notUtf8(*undecodable)));
  return result;
}

pass::RunResult run(nb::handle capsule, nb::handle pythonRun, std::string_view text,
                    const pass::RunOptions &options) {
  MlirOperation module = python::operationOf(capsule);
  python::RunScope scope(pythonRun);
  if (bindings::isInstalled())
    return runThroughBindings(module, text, options);
  // The caller holds the operation; C++ passes need no Python, so other threads may have it.
  nb::gil_scoped_release release;
  return pass::run(module, pass::Pipeline::parse(text), options);
}

/// (scope, whether it is of a backward pass, file, line) of every operation in the module, in the
/// order of its text.
nb::list provenance(nb::handle capsule) {
  ir::Operation module(python::operationOf(capsule));
  bindings::Scope scope(module.raw());
  // Who asks goes on to read the module through the bindings.
  if (auto undecodable = bindings::findUndecodable(module.raw()))
    throw std::invalid_argument(notUtf8(*undecodable));
  ir::OpList operations(module);
  analysis::Provenance provenance(operations);
  nb::list result;
  for (const ir::OpList::Entry &entry : operations) {
    if (entry.op == module)
      continue;
    const analysis::Origin &origin = provenance.of(entry.op);
    std::string_view name = provenance.text(origin.scope);
    std::string_view file = origin.source ? origin.source.filename().str() : std::string_view();
    result.append(nb::make_tuple(nb::str(name.data(), name.size()), origin.transposed,
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
    entry["default"] = option->print();
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

/// `pass` may be null.
nb::dict stringOptions(const pass::Pass *pass) {
  nb::dict given;
  for (const pass::OptionBase *option : pass ? pass->options() : pass::OptionList()) {
    auto *text = dynamic_cast<const pass::Option<std::string> *>(option);
    if (text && !text->isDefault())
      given[nb::str(option->name().data(), option->name().size())] = text->get();
  }
  return given;
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
  using Names = std::vector<std::string>;
  m.def(
      "run",
      [](nb::handle module, std::string_view pipeline, nb::handle pythonRun, bool verify,
         Names printBefore, Names printAfter, bool printAfterChange, bool printAfterFailure,
         bool timing, bool printModuleScope, bool printDebugInfo, bool printLocalScope,
         bool printGeneric, bool debugOrigins) {
        pass::RunOptions options;
        options.verify = verify;
        options.printBefore = std::move(printBefore);
        options.printAfter = std::move(printAfter);
        options.printAfterChange = printAfterChange;
        options.printAfterFailure = printAfterFailure;
        options.timing = timing;
        options.printModuleScope = printModuleScope;
        options.printDebugInfo = printDebugInfo;
        options.printLocalScope = printLocalScope;
        options.printGeneric = printGeneric;
        options.debugOrigins = debugOrigins;
        return run(module, pythonRun, pipeline, options);
      },
      nb::arg("module"), nb::arg("pipeline"), nb::kw_only(), nb::arg("python_run") = nb::none(),
      nb::arg("verify") = true, nb::arg("print_before") = Names(), nb::arg("print_after") = Names(),
      nb::arg("print_after_change") = false, nb::arg("print_after_failure") = false,
      nb::arg("timing") = false, nb::arg("print_module_scope") = false,
      nb::arg("print_debug_info") = false, nb::arg("print_local_scope") = false,
      nb::arg("print_generic") = false, nb::arg("debug_origins") = false,
      "Runs a pipeline on the builtin.module behind a capsule of jaxlib's. Python passes get "
      "`python_run`.");
}

} // namespace

NB_MODULE(_core, m) {
  m.doc() = "hlotag's MLIR passes.";
  // Objects that users keep to the end are none of their business; for us, each is worth a look.
#ifdef HLOTAG_RELEASE
  nb::set_leak_warnings(false);
#endif
  passes::registerAllPasses();

  nb::exception<capi::LoaderError> loaderError(m, "LoaderError", PyExc_RuntimeError);
  nb::exception<pass::PluginError> pluginError(m, "PluginError", PyExc_RuntimeError);
  // PipelineError of Python is made from ValueError, so that one definition serves.
  nb::register_exception_translator([](const std::exception_ptr &pointer, void *) {
    try {
      std::rethrow_exception(pointer);
    } catch (const pass::PipelineError &error) {
      PyErr_SetString(PyExc_ValueError, error.what());
    }
  });

  m.def("required_symbols", [] { return toList(capi::requiredNames()); });
  m.def("read_symbols",
        [](const std::string &path) { return capi::readSymbols(path, capi::requiredNames()); });
  m.def("build_id", &capi::buildId);
  m.def("install", &install, nb::arg("path"), nb::arg("offsets"),
        "Fills the table; returns the names of functions that are missing.");
  m.def("install_bindings", &bindings::install,
        "Fills the table with functions that go through jaxlib's Python bindings.");
  m.def("uses_bindings", &bindings::isInstalled);
  m.def("is_installed", &capi::isInstalled);
  m.attr("CONFORMANCE_MODULE") = capi::conformanceModule;
  m.def(
      "find_wrong",
      [](nb::handle module) {
        bindings::Scope scope(python::operationOf(module));
        return capi::findWrong(python::operationOf(module));
      },
      nb::arg("module"),
      "Calls every function of the table on CONFORMANCE_MODULE; names those that answer wrongly.");
  m.def(
      "table_address", [] { return reinterpret_cast<uintptr_t>(&capi::fn()); },
      "Where the table is, for C++ built against hlotag's headers; it stays there.");
  m.def("load_plugin", &pass::loadPlugin, nb::arg("path"), "Returns the names of its passes.");
  m.def("why_illegal", &analysis::whyIllegal, nb::arg("key"), nb::arg("value"),
        "Empty if the value is legal.");
  m.def("nesting_depth", &ir::nestingDepth, nb::arg("text"),
        nb::call_guard<nb::gil_scoped_release>(), "How deep the brackets of MLIR text are nested.");
  m.def("list_passes", &listPasses);
  m.def("parse_pipeline", [](std::string_view text) { return pass::Pipeline::parse(text).str(); });
  m.def("pipeline_elements", [](std::string_view text) {
    pass::Pipeline pipeline = pass::Pipeline::parse(text);
    nb::list elements;
    for (const pass::PipelineElement &element : pipeline.elements())
      elements.append(nb::make_tuple(element.name(), element.str(), bool(element.pass)));
    return elements;
  });
  m.def(
      "string_options",
      [](std::string_view text) {
        pass::Pipeline pipeline = pass::Pipeline::parse(text);
        nb::list elements;
        for (const pass::PipelineElement &element : pipeline.elements())
          elements.append(stringOptions(element.pass.get()));
        return elements;
      },
      "For each element, the options that are strings and not at their default.");
  m.def(
      "name_path",
      [](std::string_view name) {
        analysis::NamePath path = analysis::parseName(name);
        return nb::make_tuple(path.scope(), path.isTransposed());
      },
      nb::arg("name"), "The scopes in a name of JAX's, and whether it is of a backward pass.");
  m.def("provenance", &provenance, nb::arg("module"),
        "Where each operation comes from: (scope, backward, file, line).");
  bindDiagnostic(m);
  bindRunResult(m);
  bindRun(m);
  python::bindPythonPasses(m);
  python::bindHlo(m);
  python::bindTraceGroups(m);
}
