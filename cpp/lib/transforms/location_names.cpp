// SPDX-License-Identifier: Apache-2.0
#include "transforms/location_names.h"

#include <vector>

namespace hlotag::transforms {

namespace {

class Renamer {
public:
  explicit Renamer(const std::function<std::string(std::string_view)> &rename) : rename_(rename) {}

  ir::Location of(ir::Location root) {
    // Parts before wholes, without recursion: call sites are as deep as the user's stack.
    std::vector<ir::Location> pending{root};
    while (!pending.empty()) {
      ir::Location loc = pending.back();
      std::vector<ir::Location> unknown;
      if (!renamed_.find(loc.opaque()))
        for (ir::Location part : ir::partsOf(loc))
          if (!renamed_.find(part.opaque()))
            unknown.push_back(part);
      if (unknown.empty()) {
        pending.pop_back();
        if (!renamed_.find(loc.opaque()))
          *renamed_.insert(loc.opaque()).first = rebuilt(loc);
      }
      pending.insert(pending.end(), unknown.begin(), unknown.end());
    }
    return known(root);
  }

private:
  ir::Location known(ir::Location loc) { return *renamed_.find(loc.opaque()); }

  ir::Location rebuilt(ir::Location loc) {
    if (auto name = ir::dynCast<ir::NameLoc>(loc))
      return ir::NameLoc::get(rename_(name.name().str()), known(name.child()));
    if (auto call = ir::dynCast<ir::CallSiteLoc>(loc))
      return ir::CallSiteLoc::get(known(call.callee()), known(call.caller()));
    auto fused = ir::dynCast<ir::FusedLoc>(loc);
    if (!fused)
      return loc;
    std::vector<ir::Location> parts;
    for (ir::Location part : fused.parts())
      parts.push_back(known(part));
    return ir::FusedLoc::get(loc.context(), parts, fused.metadata());
  }

  const std::function<std::string(std::string_view)> &rename_;
  ir::PointerMap<ir::Location> renamed_;
};

} // namespace

void renameLocations(pass::PassContext &ctx,
                     const std::function<std::string(std::string_view)> &rename) {
  Renamer renamer(rename);
  const ir::OpList &operations = ctx.operations();
  for (size_t i = 0; i < operations.size(); ++i) {
    ctx.rewriter().setLocation(operations[i].op, renamer.of(operations[i].op.location()));
    if (!operations[i].hasRegions)
      continue;
    for (ir::Region region : operations[i].op.regions())
      for (ir::Block block : region.blocks())
        for (ir::Value argument : block.arguments())
          ctx.rewriter().setLocation(argument, renamer.of(argument.location()));
  }
}

} // namespace hlotag::transforms
