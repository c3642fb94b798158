// SPDX-License-Identifier: Apache-2.0
//
// Legal values of the keys that XLA reads.
#pragma once

#include <string>
#include <string_view>

namespace hlotag::analysis {

/// Empty if `value` is legal for `key`, or nothing is known about the key; else the legal values
/// and what XLA makes of others. Says the same as the catalogue in `keys.py`, which a test
/// compares.
std::string whyIllegal(std::string_view key, std::string_view value);

} // namespace hlotag::analysis
