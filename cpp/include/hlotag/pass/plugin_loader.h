// SPDX-License-Identifier: Apache-2.0
//
// Loading plugins with passes, the host's side of plugin/abi.h.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace hlotag::pass {

/// A plugin could not be loaded; what() says why.
class PluginError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Loads the shared library at `path` for as long as the process lives and registers its passes,
/// all or none. Returns their names; the same again for a library that is loaded already. The table
/// of MLIR's functions must be installed. Throws PluginError.
std::vector<std::string> loadPlugin(const std::string &path);

} // namespace hlotag::pass
