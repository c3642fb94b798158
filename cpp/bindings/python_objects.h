// SPDX-License-Identifier: Apache-2.0
//
// How are Python's attributes read?
#pragma once

#include <nanobind/nanobind.h>

namespace hlotag::python {

/// Returns an attribute; throws if the object has none of that name.
inline nanobind::object attribute(nanobind::handle object, PyObject *name) {
  nanobind::object value = nanobind::steal(PyObject_GetAttr(object.ptr(), name));
  if (!value)
    throw nanobind::python_error();
  return value;
}

} // namespace hlotag::python
