// SPDX-License-Identifier: Apache-2.0
//
// What the HLO stage reads of a StableHLO module, and how HLO instructions are joined to it.
#pragma once

#include "hlotag/capi/types.h"

#include <nanobind/nanobind.h>

namespace hlotag::python {

/// The operation behind a capsule of jaxlib's.
MlirOperation operationOf(nanobind::handle capsule);

void bindHlo(nanobind::module_ &m);
void bindHloJoin(nanobind::module_ &m);

} // namespace hlotag::python
