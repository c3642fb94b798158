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

/// Returns the type of a function as in `functions.def`, `MlirContext (MlirOperation)`; empty if it
/// is not in the table.
std::string_view typeOf(std::string_view name);

/// Returns the function with this name and type in the table, or null.
void *find(std::string_view name, std::string_view type);

bool isInstalled();

/// Returns the address of the function `name`, or null.
using Resolver = std::function<void *(std::string_view name)>;

/// Fills the table. If functions are missing, returns their names and leaves the table unchanged.
/// May be called again, but not while a function of the table runs.
std::vector<std::string> install(const Resolver &resolve);

} // namespace hlotag::capi
