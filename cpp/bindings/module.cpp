// SPDX-License-Identifier: Apache-2.0
//
// Which functions of the C++ side does Python see? The module hlotag._core: conversions only.
#include "hlo.h"
#include "trace_binds.h"

#include "hlotag/analysis/name_path.h"
#include "hlotag/analysis/pattern.h"
#include "hlotag/analysis/provenance.h"
#include "hlotag/capi/table.h"
#include "hlotag/ir/nesting.h"
#include "hlotag/pass/run.h"
#include "hlotag/passes/passes.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <optional>

namespace nb = nanobind;
using namespace hlotag;

namespace {

nb::list toList(const std::vector<std::string_view> &names) {
  nb::list list;
  for (std::string_view name : names)
    list.append(nb::str(name.data(), name.size()));
  return list;
}

/// `function` is None, or takes a key and a value and returns a text.
pass::ValueCheck valueCheckOf(nb::handle function) {
  if (function.is_none())
    return {};
  return [function](std::string_view key, std::string_view value) {
    nb::gil_scoped_acquire acquire;
    auto decode = [](std::string_view text) {
      return nb::steal(PyUnicode_DecodeUTF8(text.data(), Py_ssize_t(text.size()), "replace"));
    };
    return nb::cast<std::string>(function(decode(key), decode(value)));
  };
}

using PassOfText = std::pair<std::string, std::map<std::string, pass::OptionValue>>;

pass::RunResult run(nb::handle module, const std::vector<PassOfText> &passes, bool verify,
                    bool debugOrigins, bool keepFailed, std::string source, nb::handle whyIllegal) {
  pass::RunOptions options{verify, debugOrigins, keepFailed, std::move(source),
                           valueCheckOf(whyIllegal)};
  ir::Operation operation = python::operationOf(module);
  pass::Pipeline pipeline;
  for (const auto &[name, values] : passes)
    pipeline.push_back(passes::makePass(name, {values.begin(), values.end()}));
  // The caller holds a reference to the module, and C++ passes need no Python.
  nb::gil_scoped_release release;
  return pass::run(operation, pipeline, options);
}

/// Collects what MLIR reports on this thread, for passes that Python runs.
class Reports {
public:
  Reports(nb::handle module, std::string source)
      : source_(std::move(source)), name_(std::in_place, source_),
        scope_(std::in_place, python::operationOf(module).context()) {}
  std::vector<ir::Diagnostic> take() {
    return scope_ ? scope_->take() : std::vector<ir::Diagnostic>();
  }
  void end() {
    scope_.reset();
    name_.reset();
  }

private:
  std::string source_;
  std::optional<ir::SourceName> name_;
  std::optional<ir::DiagnosticScope> scope_;
};

/// Returns (scope, phase, file, line) of every operation in the module, in the order of its
/// text.
nb::list provenance(nb::handle pythonModule) {
  ir::Operation module = python::operationOf(pythonModule);
  ir::OpList operations(module);
  ir::OpIds ids(module.context());
  analysis::CallGraph calls(operations, ids);
  analysis::Provenance provenance(ids, calls);
  nb::list result;
  for (const ir::OpList::Item &item : operations) {
    if (item.op == module)
      continue;
    const analysis::Origin &origin = provenance.of(item.op);
    std::string name = provenance.paths().text(origin.scope);
    std::string_view phase =
        analysis::phaseOf(origin.differentiated, origin.transposed, origin.rematted);
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
  result["options"] = options;
  return result;
}

nb::list listPasses() {
  nb::list passes;
  for (const auto &pass : passes::makeAllPasses())
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
      .def_ro("notes", &Diagnostic::notes);
}

void bindRun(nb::module_ &m) {
  using pass::RunResult;
  nb::class_<RunResult>(m, "RunResult", "What a run did.")
      .def_ro("ok", &RunResult::ok)
      .def_ro("failing_pass", &RunResult::failingPass)
      .def_ro("diagnostics", &RunResult::diagnostics)
      .def_ro("num_changes", &RunResult::numChanges);
  m.def("run", &run, nb::arg("module"), nb::arg("passes"), nb::kw_only(), nb::arg("verify") = true,
        nb::arg("debug_origins") = false, nb::arg("keep_failed") = false, nb::arg("source") = "-",
        nb::arg("why_illegal") = nb::none(),
        "Runs hlotag's passes on an `ir.Module`: (name, values of options).");
  nb::class_<Reports>(m, "Reports", "Collects what MLIR reports, until `end()`.")
      .def(nb::init<nb::handle, std::string>(), nb::arg("module"), nb::arg("source"))
      .def("take", &Reports::take, "The diagnostics since the last call.")
      .def("end", &Reports::end);
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

void bindAnalyses(nb::module_ &m) {
  m.def("nesting_depth", &ir::nestingDepth, nb::arg("text"),
        nb::call_guard<nb::gil_scoped_release>(), "The depth of nested brackets in MLIR text.");
  m.def(
      "name_path",
      [](std::string_view name) {
        analysis::NamePath path = analysis::parseName(name);
        analysis::Paths paths;
        analysis::PathId scope = 0;
        for (const std::string &each : path.scopes)
          scope = paths.append(scope, each);
        return nb::make_tuple(
            paths.text(scope),
            analysis::phaseOf(path.isDifferentiated(), path.isTransposed(), path.rematted));
      },
      nb::arg("name"),
      "The scopes in a name of JAX's, and the phase: empty if not differentiated.");
  m.def("provenance", &provenance, nb::arg("module"),
        "The origin of each operation: (scope, phase, file, line).");
  m.def("names_in", &analysis::namesIn, nb::arg("pattern"), "The names in braces in a pattern.");
  m.def("why_no_pattern", &analysis::whyNoPattern, nb::arg("pattern"), nb::kw_only(),
        nb::arg("binds_names"), "Why a text is no pattern; empty if it is one.");
  m.def("matches_op", &analysis::matchesOp, nb::arg("pattern"), nb::arg("name"),
        "Whether a pattern matches an operation's name, with or without its dialect.");
  using analysis::TextPattern;
  auto textsOf = [](const std::optional<analysis::Bindings> &match) {
    return match ? nb::object(nb::tuple(nb::cast(*match))) : nb::none();
  };
  nb::class_<TextPattern>(m, "TextPattern", "A pattern of a whole text.")
      .def(nb::init<std::string_view>(), nb::arg("pattern"))
      .def(
          "match",
          [textsOf](const TextPattern &self, std::string_view text) {
            return textsOf(self.match(text));
          },
          nb::arg("text"), "The texts of names if the pattern matches; else None.")
      .def(
          "match_source",
          [textsOf](const TextPattern &self, std::string_view file, int line, int column) {
            return textsOf(self.matchSource(file, line, column));
          },
          nb::arg("file"), nb::arg("line"), nb::arg("column"),
          "As `match`, for a file with or without line and column, or the end of its path.");
  using analysis::ScopePattern;
  nb::class_<ScopePattern>(m, "ScopePattern", "A pattern of successive elements of a scope path.")
      .def(nb::init<std::string_view>(), nb::arg("pattern"))
      .def(
          "advance",
          [](ScopePattern &self, ScopePattern::State state, std::string_view scope) {
            state = self.next(state, scope);
            const analysis::Bindings *match = self.matchAt(state);
            return nb::make_tuple(state,
                                  match ? nb::object(nb::tuple(nb::cast(*match))) : nb::none());
          },
          nb::arg("state"), nb::arg("scope"),
          "The state after a scope, which may have several elements, from the one before it; 0 is "
          "that of the empty path. And the texts of names, if a match ends in the scope.");
}

} // namespace

NB_MODULE(_core, m) {
  m.doc() = "hlotag's MLIR passes.";
  // A release does not warn about objects that users keep until the process ends.
#ifdef HLOTAG_RELEASE
  nb::set_leak_warnings(false);
#endif
  bindLoading(m);
  m.def("list_passes", &listPasses);
  bindAnalyses(m);
  bindDiagnostic(m);
  bindRun(m);
  python::bindHlo(m);
  python::defineBinds(m);
  python::bindWrappedMethods(m);
}
