// SPDX-License-Identifier: Apache-2.0
//
// Whether the functions in the table do what their names say.
//
// A jaxlib that was never seen may have other functions where ours should be. Every function of the
// table is called here on a module whose answers are known. Run it in a process that may crash.
#pragma once

#include "hlotag/capi/types.h"

#include <string>
#include <vector>

namespace hlotag::capi {

/// The module that `findWrong` takes; with the dialects of MLIR's `func`, and unregistered ones
/// allowed.
extern const char *const conformanceModule;

/// Calls every function of the table. Returns which gave a wrong answer; empty if none did. The
/// module is as it was afterwards.
std::vector<std::string> findWrong(MlirOperation module);

} // namespace hlotag::capi
