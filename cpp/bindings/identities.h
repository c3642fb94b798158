// SPDX-License-Identifier: Apache-2.0
//
// Which operation of the program was an equation made for?
#pragma once

#include <nanobind/nanobind.h>

namespace hlotag::python {

/// While it lives, the equations that this thread traces have an identity: the current one, or a
/// new one if there is none.
class Identified {
public:
  Identified() = default;
  ~Identified();
  Identified(const Identified &) = delete;
  Identified &operator=(const Identified &) = delete;

  /// Enters the scope for a bind of `primitive` with its keyword arguments; `names` may be null.
  /// Returns false if an exception is set.
  bool enter(PyObject *primitive, PyObject *const *values, PyObject *names);

private:
  nanobind::object before_; // the former source info of the thread; null if unchanged
};

void bindIdentities(nanobind::module_ &m);

} // namespace hlotag::python
