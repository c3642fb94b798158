// SPDX-License-Identifier: Apache-2.0
//
// Which values are legal for the keys that XLA reads?
#pragma once

#include <string>
#include <string_view>

namespace hlotag::analysis {

/// Returns an empty string if `value` is legal for `key` or the key is unknown; else the legal
/// values and how XLA treats others. A test compares this with the catalogue in `keys.py`.
std::string whyIllegal(std::string_view key, std::string_view value);

} // namespace hlotag::analysis
