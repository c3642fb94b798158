// SPDX-License-Identifier: Apache-2.0
//
// What the HLO stage reads of a StableHLO module, and how HLO instructions are joined to it.
#pragma once

#include "hlotag/capi/types.h"

#include <nanobind/nanobind.h>

#include <string_view>

namespace hlotag::python {

/// The operation behind a capsule of jaxlib's.
MlirOperation operationOf(nanobind::handle capsule);

/// What is not UTF-8 becomes lone surrogates: who goes on to write it gets Python's error about it.
nanobind::object toStr(std::string_view text);

void bindHlo(nanobind::module_ &m);

} // namespace hlotag::python
