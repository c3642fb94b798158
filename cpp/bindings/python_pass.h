// SPDX-License-Identifier: Apache-2.0
//
// How does a Python function run as a pass?
#pragma once

#include <nanobind/nanobind.h>

namespace hlotag::python {

/// Passes `run`, an object of the caller, to the Python passes of this thread. Scopes nest.
class RunScope {
public:
  explicit RunScope(nanobind::handle run);
  ~RunScope();
  RunScope(const RunScope &) = delete;
  RunScope &operator=(const RunScope &) = delete;

private:
  nanobind::handle outer_;
};

void bindPythonPasses(nanobind::module_ &m);

} // namespace hlotag::python
