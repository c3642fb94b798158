// SPDX-License-Identifier: Apache-2.0
//
// How are MLIR's C functions implemented by jaxlib's public Python bindings? This second, slower
// host serves a jaxlib whose own functions cannot be called.
//
// Each function in functions.def is declared here and defined in a file beside this one. A missing
// definition fails to link, one of another type fails to compile.
#pragma once

#include "hlotag/capi/types.h"

#include <nanobind/nanobind.h>

#include <optional>
#include <string>

// Hidden, because the linker accepts undefined visible symbols in a shared library.
#pragma GCC visibility push(hidden)

namespace hlotag::bindings {

#define HLOTAG_REQUIRED(ret, name, args) ret name args;
#include "hlotag/capi/functions.def"

/// Fills the table with the functions above.
void install();

/// Whether the table has these functions.
bool isInstalled();

class Session;

/// Lets this thread call the functions above. Handles are valid until the outermost scope ends.
/// Does nothing if the table has jaxlib's own functions.
class Scope {
public:
  /// `module` is an operation in the context of all calls.
  explicit Scope(MlirOperation module);
  ~Scope();
  Scope(const Scope &) = delete;
  Scope &operator=(const Scope &) = delete;

private:
  Session *session_ = nullptr;
};

/// Drops cached blocks and uses of the current session: they may have changed without the table.
void forgetStructure();

/// Returns a text in `module` that is not UTF-8, as MLIR prints it, or nothing. jaxlib's bindings
/// end the process when they read such a name.
std::optional<std::string> findUndecodable(MlirOperation module);

} // namespace hlotag::bindings

#pragma GCC visibility pop
