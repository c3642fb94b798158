// SPDX-License-Identifier: Apache-2.0
//
// Which frames of a traceback are a call of a library; `_compat/tracing.py` says why.
#pragma once

#include <nanobind/nanobind.h>

namespace hlotag::python {

void bindLibraryCall(nanobind::module_ &m);

} // namespace hlotag::python
