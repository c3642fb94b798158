// SPDX-License-Identifier: Apache-2.0
//
// Which equations JAX makes during one bind of a primitive; `tracing.py` says why.
#pragma once

#include <nanobind/nanobind.h>

namespace hlotag::python {

void bindTraceGroups(nanobind::module_ &m);

} // namespace hlotag::python
