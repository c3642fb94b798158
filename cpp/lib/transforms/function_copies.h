// SPDX-License-Identifier: Apache-2.0
//
// Copies of functions, for callers that need another body.
#pragma once

#include "hlotag/pass/pass.h"

#include <string>
#include <unordered_map>
#include <unordered_set>

namespace hlotag::transforms {

/// Copies functions of one module. Reads its symbols once, so nobody else may add any meanwhile.
class FunctionCopies {
public:
  explicit FunctionCopies(pass::PassContext &ctx);

  /// A private copy of `function` behind `after`, named `f_0`, `f_1`, ...
  ir::Operation copy(ir::Operation function, ir::Operation after);
  ir::FlatSymbolRefAttr symbolOf(ir::Operation function) const;

private:
  std::string freshName(const std::string &base);

  pass::PassContext &ctx_;
  ir::Identifier visibility_;
  std::unordered_set<std::string> names_;
  std::unordered_map<std::string, size_t> nextSuffix_; // by name of the original
};

} // namespace hlotag::transforms
