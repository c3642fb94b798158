// SPDX-License-Identifier: Apache-2.0
//
// Does each function in the table do what its name says?
//
// In an untested jaxlib, other functions may be at the addresses found. Each function of the table
// is called on a module with known answers. Run this in a process that may crash.
#pragma once

#include "hlotag/capi/types.h"

#include <string>
#include <vector>

namespace hlotag::capi {

/// The text of the module for `findWrong`. Its context needs MLIR's `func` dialect and must allow
/// unregistered dialects.
extern const char *const conformanceModule;

/// Calls every function of the table. Returns the names of functions with a wrong answer. Leaves
/// the module unchanged.
std::vector<std::string> findWrong(MlirOperation module);

} // namespace hlotag::capi
