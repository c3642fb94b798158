// SPDX-License-Identifier: Apache-2.0
//
// What do messages call a module that was read from text, whose locations have no file's name?
#pragma once

#include <string_view>

namespace hlotag::ir {

/// MLIR's own name in such locations.
inline constexpr std::string_view kNoFile = "-";

/// Has `render` write `name` for `kNoFile` in this thread, while this lives; `name` must too.
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
