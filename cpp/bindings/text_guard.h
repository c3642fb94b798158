// SPDX-License-Identifier: Apache-2.0
//
// Can jaxlib's Python bindings read every name in a module? They end the process when they read a
// name that is not UTF-8.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>

namespace hlotag::python {

/// Returns a name in the module behind `capsule` that is not UTF-8, as MLIR prints it, or nothing.
std::optional<std::string> findUndecodable(nanobind::handle capsule);

} // namespace hlotag::python
