// SPDX-License-Identifier: Apache-2.0
//
// The second host: the functions of the table, made of jaxlib's public Python bindings. It serves
// where jaxlib's own functions cannot be had, and gives the same results, slower.
//
// Each function in functions.def is declared here and defined in one of the files beside this one;
// one that is missing does not link, one of another type does not compile.
#pragma once

#include "hlotag/capi/types.h"

#include <nanobind/nanobind.h>

#include <optional>
#include <string>

// Hidden, so that the linker misses an undefined one; a shared library may lack visible ones.
#pragma GCC visibility push(hidden)

namespace hlotag::bindings {

#define HLOTAG_REQUIRED(ret, name, args) ret name args;
#include "hlotag/capi/functions.def"

/// Fills the table with the functions above.
void install();

/// Whether the table holds them.
bool isInstalled();

class Session;

/// While it lives, this thread can call the functions above. Handles are good for as long as the
/// outermost scope. Does nothing where the table holds jaxlib's own functions.
class Scope {
public:
  /// `module` is an operation in the context that the functions are called for.
  explicit Scope(MlirOperation module);
  ~Scope();
  Scope(const Scope &) = delete;
  Scope &operator=(const Scope &) = delete;

private:
  Session *session_ = nullptr;
};

/// Tells the current session, if there is one, that blocks and uses may have changed by other
/// means than the table.
void forgetStructure();

/// A piece of text in `module` that is not UTF-8, as MLIR prints it. jaxlib's bindings end the
/// process when they are asked for such a name.
std::optional<std::string> findUndecodable(MlirOperation module);

} // namespace hlotag::bindings

#pragma GCC visibility pop
