// SPDX-License-Identifier: Apache-2.0
//
// The C functions of MLIR, reached through pointers that are filled once per process from the
// MLIR that the running jaxlib carries.
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

/// The table. Valid to call through once `isInstalled()`.
inline const Table &fn() { return functions; }

std::vector<std::string_view> requiredNames();

/// A function's type as `functions.def` writes it, `MlirContext (MlirOperation)`; empty if it is
/// not in the table.
std::string_view typeOf(std::string_view name);

/// The function of that name and type in the table, or null.
void *find(std::string_view name, std::string_view type);

bool isInstalled();

/// Gives the address of a function by its name, or null.
using Resolver = std::function<void *(std::string_view name)>;

/// Fills the table. All or nothing: when functions are missing their names are returned
/// and the table stays as it was. Installing again replaces the table; do so only while nothing
/// runs.
std::vector<std::string> install(const Resolver &resolve);

/// The same with all functions at hand.
void install(const Table &filled);

} // namespace hlotag::capi
