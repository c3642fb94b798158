// SPDX-License-Identifier: Apache-2.0
//
// What fuzz targets stop with when something is wrong that no sanitizer sees.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace hlotag::fuzz {

/// Ends the process, which libFuzzer takes for a finding, unless `holds`.
inline void require(bool holds, const char *what, std::string_view found = {}) {
  if (holds)
    return;
  std::fprintf(stderr, "not so: %s\n%.*s\n", what, int(found.size()), found.data());
  std::abort();
}

} // namespace hlotag::fuzz
