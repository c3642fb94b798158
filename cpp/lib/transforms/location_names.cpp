// SPDX-License-Identifier: Apache-2.0
#include "transforms/location_names.h"

#include <vector>

namespace hlotag::transforms {

void renameLocations(pass::PassContext &ctx,
                     const std::function<std::string(std::string_view)> &rename) {
  ir::LocationMap<ir::Location> renamed;
  auto rebuilt = [&](ir::Location loc) {
    if (auto name = ir::dynCast<ir::NameLoc>(loc))
      return ir::Location(ir::NameLoc::get(rename(name.name().str()), renamed.at(name.child())));
    std::vector<ir::Location> parts = ir::partsOf(loc);
    for (ir::Location &part : parts)
      part = renamed.at(part);
    return ir::replaceParts(loc, parts);
  };
  const ir::OpList &operations = ctx.operations();
  for (size_t i = 0; i < operations.size(); ++i) {
    ctx.rewriter().setLocation(operations[i].op, renamed.of(operations[i].op.location(), rebuilt));
    if (!operations[i].hasRegions)
      continue;
    for (ir::Region region : operations[i].op.regions())
      for (ir::Block block : region.blocks())
        for (ir::Value argument : block.arguments())
          ctx.rewriter().setLocation(argument, renamed.of(argument.location(), rebuilt));
  }
}

} // namespace hlotag::transforms
