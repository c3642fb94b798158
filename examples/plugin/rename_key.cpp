// SPDX-License-Identifier: Apache-2.0
//
// A pass of one's own: `rename-key{from=a to=b}` renames the tag `a` of every operation to `b`.
#include "hlotag/plugin/plugin.h"

namespace {

using namespace hlotag;
using namespace hlotag::pass;

class RenameKey final : public PassBase<RenameKey> {
public:
  static const PassInfo &staticInfo() {
    static const PassInfo info{"rename-key", "RenameKey", "Rename a tag",
                               "Renames the entry `from` of `mhlo.frontend_attributes` to `to`."};
    return info;
  }

  LogicalResult run(PassContext &ctx) override {
    if (from_->empty() || to_->empty())
      return ctx.emitError(ctx.module(), "both 'from' and 'to' must be given");
    LogicalResult result = success();
    ir::walk(ctx.module(), [&](ir::Operation op) {
      ir::DictionaryAttr entries = ctx.tags().get(op);
      if (entries && entries.lookup(*from_) && failed(rename(ctx, op, entries)))
        result = failure();
    });
    return result;
  }

private:
  LogicalResult rename(PassContext &ctx, ir::Operation op, ir::DictionaryAttr entries) const {
    if (entries.lookup(*to_))
      return ctx.emitError(op, "the operation already has a tag '" + *to_ + "'");
    std::vector<ir::NamedAttribute> renamed;
    for (ir::NamedAttribute entry : entries) {
      if (entry.name.str() == *from_)
        entry.name = ir::Identifier::get(ctx.context(), *to_);
      renamed.push_back(entry);
    }
    ctx.rewriter().setAttr(op, ctx.ids().frontendAttributes,
                           ir::DictionaryAttr::get(ctx.context(), renamed));
    return success();
  }

  Option<std::string> from_{options(), "from", "the tag to rename"};
  Option<std::string> to_{options(), "to", "its new name"};
};

} // namespace

HLOTAG_PASS_PLUGIN("rename-key", "1.0", RenameKey)
