// SPDX-License-Identifier: Apache-2.0
//
// Passes whose work is a Python function.
#pragma once

#include <nanobind/nanobind.h>

namespace hlotag::python {

/// While it lives, Python passes that this thread runs are given `run`, the caller's own object.
/// Nests.
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
