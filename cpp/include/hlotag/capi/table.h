// SPDX-License-Identifier: Apache-2.0
//
// How are MLIR's C functions called? Through pointers into the MLIR of the running jaxlib, filled
// once per process.
#pragma once

#include "hlotag/capi/types.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hlotag::capi {

struct Table {
#define HLOTAG_REQUIRED(ret, name, args) ret(*name) args = nullptr;
#include "hlotag/capi/functions.def"
};

extern Table functions;

/// The table. Its functions may be called once `isInstalled()`.
inline const Table &fn() { return functions; }

std::vector<std::string_view> requiredNames();

bool isInstalled();

/// Returns the address of the function `name`, or null.
using Resolver = std::function<void *(std::string_view name)>;

/// Fills the table. If functions are missing, returns their names and leaves the table unchanged.
/// May be called again, but not while a function of the table runs.
std::vector<std::string> install(const Resolver &resolve);

} // namespace hlotag::capi
