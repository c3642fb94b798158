// SPDX-License-Identifier: Apache-2.0
//
// Which line of the user's program is an instruction from?
#pragma once

#include "hlotag/hlo/module.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace hlotag::hlo {

/// A line of a file; the file is empty if XLA has none.
struct Source {
  std::string_view file;
  int64_t line = 0;
};

/// The lines of a module's instructions: their own, or those of their stack frames. Has views of
/// the module. The constructor and `of` throw `ModuleError` if a message is cut off.
class Sources {
public:
  explicit Sources(const Module &module);
  Source of(size_t instruction) const;

private:
  const Module &module_;
  std::vector<Source> frames_; // By the frame's id, which counts from 1.
};

} // namespace hlotag::hlo
