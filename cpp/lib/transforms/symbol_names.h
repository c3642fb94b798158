// SPDX-License-Identifier: Apache-2.0
//
// Names for new functions.
#pragma once

#include "hlotag/ir/ir.h"

#include <string>
#include <unordered_map>
#include <unordered_set>

namespace hlotag::transforms {

/// The symbols of one module. Read once, so nobody else may add any meanwhile.
class SymbolNames {
public:
  explicit SymbolNames(ir::Operation module, const ir::OpIds &ids);

  /// `name`, or if that is taken what `numbered` gives.
  std::string fresh(const std::string &name);
  /// `base_0`, `base_1`, ...: the first that is free.
  std::string numbered(const std::string &base);

private:
  std::unordered_set<std::string> names_;
  std::unordered_map<std::string, size_t> nextNumber_; // by base
};

} // namespace hlotag::transforms
