// SPDX-License-Identifier: Apache-2.0
//
// How does a pass write a file?
#pragma once

#include <string>

namespace hlotag::pass {

/// Writes a whole file or none: an existing file is replaced, or stays unchanged if writing fails.
/// Writes directly to devices such as `/dev/stdout`. Returns why writing failed, or an empty
/// string.
std::string writeAtomically(const std::string &path, const std::string &content);

} // namespace hlotag::pass
