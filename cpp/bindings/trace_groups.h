// SPDX-License-Identifier: Apache-2.0
//
// Which equations does JAX make during one bind of a primitive? See `tracing.py`.
#pragma once

#include <nanobind/nanobind.h>

namespace hlotag::python {

void bindTraceGroups(nanobind::module_ &m);

} // namespace hlotag::python
