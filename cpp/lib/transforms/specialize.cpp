// SPDX-License-Identifier: Apache-2.0
#include "specialize.h"

namespace hlotag::transforms {

FunctionCopies::FunctionCopies(pass::PassContext &ctx)
    : ctx_(ctx), visibility_(ir::Identifier::get(ctx.context(), "sym_visibility")) {
  for (ir::Block block : ctx.module().regions()[0].blocks())
    for (ir::Operation op : block.operations())
      if (auto name = op.attrOf<ir::StringAttr>(ctx.ids().symName.str()))
        names_.emplace(name.value());
}

std::string FunctionCopies::makeName(const std::string &base) {
  for (size_t &next = nextNumber_[base];;) {
    std::string name = base + "_" + std::to_string(next++);
    if (names_.insert(name).second)
      return name;
  }
}

ir::Operation FunctionCopies::copy(ir::Operation function, ir::Operation after) {
  auto name = function.attrOf<ir::StringAttr>(ctx_.ids().symName.str());
  std::string fresh = makeName(std::string(name.value()));
  ir::Operation copied = ctx_.rewriter().insert(ir::OwnedOperation::clone(function), after.block(),
                                                after.nextInBlock());
  ctx_.rewriter().setAttr(copied, ctx_.ids().symName, ir::StringAttr::get(ctx_.context(), fresh));
  ctx_.rewriter().setAttr(copied, visibility_, ir::StringAttr::get(ctx_.context(), "private"));
  return copied;
}

void retarget(pass::PassContext &ctx, const analysis::CallGraph::CallSite &site, ir::Operation op,
              ir::Operation function) {
  auto symbol = ir::FlatSymbolRefAttr::get(
      ctx.context(), function.attrOf<ir::StringAttr>(ctx.ids().symName.str()).value());
  ir::Identifier name = ctx.ids().calleesOf(op.name());
  ir::ArrayAttr list = op.attrOf<ir::ArrayAttr>(name.str());
  if (!list) {
    ctx.rewriter().setAttr(op, name, symbol);
    return;
  }
  std::vector<ir::Attribute> callees;
  for (ir::Attribute callee : list)
    callees.push_back(callees.size() == site.index ? symbol : callee);
  ctx.rewriter().setAttr(op, name, ir::ArrayAttr::get(ctx.context(), callees));
}

} // namespace hlotag::transforms
