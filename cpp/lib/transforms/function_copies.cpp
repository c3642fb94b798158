// SPDX-License-Identifier: Apache-2.0
#include "function_copies.h"

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

ir::FlatSymbolRefAttr FunctionCopies::symbolOf(ir::Operation function) const {
  auto name = function.attrOf<ir::StringAttr>(ctx_.ids().symName.str());
  return ir::FlatSymbolRefAttr::get(ctx_.context(), name.value());
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
              ir::FlatSymbolRefAttr function) {
  ir::Identifier name = ctx.ids().calleesOf(op.name());
  ir::ArrayAttr list = op.attrOf<ir::ArrayAttr>(name.str());
  if (!list) {
    ctx.rewriter().setAttr(op, name, function);
    return;
  }
  std::vector<ir::Attribute> callees;
  for (ir::Attribute callee : list)
    callees.push_back(callees.size() == site.index ? function : callee);
  ctx.rewriter().setAttr(op, name, ir::ArrayAttr::get(ctx.context(), callees));
}

} // namespace hlotag::transforms
