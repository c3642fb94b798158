// SPDX-License-Identifier: Apache-2.0
#include "python_pass.h"

#include "hlotag/pass/guest.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;

namespace hlotag::python {

namespace {

thread_local nb::handle currentRun;

/// A Python object that is never released: the last copy of a pass may be destroyed without the
/// interpreter's lock.
struct Immortal {
  nb::handle handle;
};

/// `function(run, values)` returns None, or the reason of a failure.
pass::LogicalResult call(nb::handle function, pass::PassContext &ctx, const pass::Pass &pass) {
  nb::gil_scoped_acquire acquire;
  if (!currentRun.is_valid() || currentRun.is_none())
    return ctx.emitError(ctx.module(), "a Python pass runs only through hlotag's Python functions");
  try {
    nb::list values;
    for (const pass::OptionBase *option : pass.options())
      values.append(option->value());
    nb::object failure = function(currentRun, values);
    if (failure.is_none())
      return pass::success();
    return ctx.emitError(ctx.module(), nb::cast<std::string>(failure));
  } catch (nb::python_error &error) { // e.g. KeyboardInterrupt; `function` handles other errors
    return ctx.emitError(ctx.module(), error.what());
  }
}

using OptionTuple = std::tuple<std::string, std::string, pass::OptionValue, std::string>;

void registerPass(std::string argument, std::string summary, std::string description,
                  const std::vector<OptionTuple> &options, nb::object function, bool replace) {
  pass::GuestSpec spec;
  spec.argument = std::move(argument);
  spec.summary = std::move(summary);
  spec.description = std::move(description);
  for (const auto &[name, type, initial, text] : options)
    spec.options.push_back({name, type, initial, text});
  spec.run = [held = Immortal{function}](pass::PassContext &ctx, const pass::GuestPass &self) {
    return call(held.handle, ctx, self);
  };
  std::vector<pass::GuestSpec> specs;
  specs.push_back(std::move(spec));
  if (auto problem = pass::registerGuests(std::move(specs), replace))
    throw nb::value_error(problem->c_str());
  function.release();
}

} // namespace

RunScope::RunScope(nb::handle run) : outer_(currentRun) { currentRun = run; }

RunScope::~RunScope() { currentRun = outer_; }

void bindPythonPasses(nb::module_ &m) {
  m.def("register_pass", &registerPass, nb::arg("argument"), nb::arg("summary"),
        nb::arg("description"), nb::arg("options"), nb::arg("function"), nb::kw_only(),
        nb::arg("replace") = false, "Makes a Python function a pass; it is never freed.");
}

} // namespace hlotag::python
