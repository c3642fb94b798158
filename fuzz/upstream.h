// SPDX-License-Identifier: Apache-2.0
//
// Upstream's MLIR, linked into the fuzz target, in the place of jaxlib's.
#pragma once

#include "hlotag/capi/types.h"

#include <string>
#include <string_view>

namespace hlotag::fuzz {

/// Fills hlotag's table of functions.
void installUpstream();

/// A new context with the func dialect, in which unknown operations are allowed, and whose
/// diagnostics are swallowed.
MlirContext makeContext();
void destroyContext(MlirContext context);

/// The module behind `text`, or a null operation if that is not valid; `destroyModule` frees it.
MlirOperation parseModule(MlirContext context, std::string_view text);
void destroyModule(MlirOperation module);

/// The generic form, with locations.
std::string print(MlirOperation op);

} // namespace hlotag::fuzz
