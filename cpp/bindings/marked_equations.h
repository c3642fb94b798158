// SPDX-License-Identifier: Apache-2.0
//
// What JAX's lowering reads instead of the equations of a jaxpr; `_compat/jaxprs.py` says why.
#pragma once

#include <nanobind/nanobind.h>

namespace hlotag::python {

void bindMarkedEquations(nanobind::module_ &m);

} // namespace hlotag::python
