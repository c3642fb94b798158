// SPDX-License-Identifier: Apache-2.0
//
// What do messages call a text without a file name that a module was read from?
#pragma once

#include <string_view>

namespace hlotag::ir {

/// MLIR's own name in such locations.
inline constexpr std::string_view kNoFile = "-";

/// While it lives, `render` writes `name` for `kNoFile` in this thread. `name` must outlive it.
class SourceName {
public:
  explicit SourceName(std::string_view name);
  ~SourceName();
  SourceName(const SourceName &) = delete;
  SourceName &operator=(const SourceName &) = delete;

private:
  std::string_view outer_;
};

} // namespace hlotag::ir
