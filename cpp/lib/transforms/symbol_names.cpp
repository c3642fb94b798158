// SPDX-License-Identifier: Apache-2.0
#include "symbol_names.h"

namespace hlotag::transforms {

SymbolNames::SymbolNames(ir::Operation module, const ir::OpIds &ids) {
  for (ir::Block block : module.regions()[0].blocks())
    for (ir::Operation op : block.operations())
      if (auto name = op.attrOf<ir::StringAttr>(ids.symName.str()))
        names_.emplace(name.value());
}

std::string SymbolNames::makeNumbered(const std::string &base) {
  for (size_t &next = nextNumber_[base];;) {
    std::string name = base + "_" + std::to_string(next++);
    if (names_.insert(name).second)
      return name;
  }
}

} // namespace hlotag::transforms
