// SPDX-License-Identifier: Apache-2.0
//
// Files that passes write.
#pragma once

#include <string>

namespace hlotag::pass {

/// Writes a file that is there either whole or not at all; an old one is replaced, and stays as it
/// was if that fails. What is no file, such as `/dev/stdout`, is written to as it is. Returns the
/// reason if it cannot be written, else an empty string.
std::string writeAtomically(const std::string &path, const std::string &content);

} // namespace hlotag::pass
