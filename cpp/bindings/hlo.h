// SPDX-License-Identifier: Apache-2.0
//
// How does Python call the HLO pass's C++ side?
#pragma once

#include "hlotag/ir/operation.h"

#include <nanobind/nanobind.h>

#include <string_view>

namespace hlotag::python {

/// Returns the operation of an `ir.Module`. It is valid while the caller holds the module.
ir::Operation operationOf(nanobind::handle module);

/// Bytes that are not UTF-8 become lone surrogates, which Python refuses to write.
nanobind::object toStr(std::string_view text);

void bindHlo(nanobind::module_ &m);

} // namespace hlotag::python
