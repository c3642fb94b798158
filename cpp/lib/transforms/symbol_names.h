// SPDX-License-Identifier: Apache-2.0
//
// Which names are free for new functions?
#pragma once

#include "hlotag/ir/ir.h"

#include <string>
#include <unordered_map>
#include <unordered_set>

namespace hlotag::transforms {

/// The symbols of one module, read once: nothing else may add symbols meanwhile.
class SymbolNames {
public:
  explicit SymbolNames(ir::Operation module, const ir::OpIds &ids);

  /// Returns the first free name of `base_0`, `base_1`, ...
  std::string makeNumbered(const std::string &base);

private:
  std::unordered_set<std::string> names_;
  std::unordered_map<std::string, size_t> nextNumber_; // by base
};

} // namespace hlotag::transforms
