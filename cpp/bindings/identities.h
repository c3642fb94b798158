// SPDX-License-Identifier: Apache-2.0
//
// Identities: which operation of the program an equation was made for.
#pragma once

#include <nanobind/nanobind.h>

namespace hlotag::python {

/// While alive, what the thread traces has an identity: the one that it has anyway, or a new one.
class Identified {
public:
  Identified() = default;
  ~Identified();
  Identified(const Identified &) = delete;
  Identified &operator=(const Identified &) = delete;

  /// For a bind of `primitive`, with its keyword arguments; `names` may be null. Returns false if
  /// that raised an exception.
  bool enter(PyObject *primitive, PyObject *const *values, PyObject *names);

private:
  nanobind::object before_; // the thread's source info; null if it was left as it was
};

void bindIdentities(nanobind::module_ &m);

} // namespace hlotag::python
