// SPDX-License-Identifier: Apache-2.0
//
// How does the host load a plugin? The other side of plugin/abi.h is plugin/plugin.h.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace hlotag::plugin {

/// A plugin cannot be loaded; what() says why.
class PluginError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Loads the shared library at `path` for the life of the process and registers its passes, all or
/// none. Returns their names, also for a library that is already loaded. The table of MLIR's
/// functions must be installed. Throws PluginError.
std::vector<std::string> load(const std::string &path);

} // namespace hlotag::plugin
