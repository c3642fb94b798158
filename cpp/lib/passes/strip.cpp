// SPDX-License-Identifier: Apache-2.0
#include "hlotag/pass/pass.h"
#include "hlotag/passes/passes.h"

#include <algorithm>

namespace hlotag::passes {

namespace {

using namespace pass;

class Strip final : public Pass {
public:
  Strip() : Pass({"hlotag-strip", "HlotagStrip", "Remove frontend-attribute entries by key"}) {}

  void run(PassContext &ctx) override {
    ir::PointerMap<ir::DictionaryAttr> stripped;
    for (const ir::OpList::Item &item : ctx.operations()) {
      ir::Operation op = item.op;
      if (isOfAll())
        ctx.rewriter().removeAttr(op, ctx.tags().origins());
      ir::DictionaryAttr entries = ctx.tags().get(op);
      if (!entries)
        continue;
      auto [result, isNew] = stripped.insert(entries.opaque());
      if (isNew)
        *result = ctx.tags().select(
            entries, [&](ir::NamedAttribute entry) { return !isRemoved(entry.name.str()); });
      ctx.tags().set(op, *result);
    }
  }

private:
  bool isOfAll() const { return keys_->empty() && names_->empty(); }

  bool isRemoved(std::string_view key) const {
    if (isOfAll())
      return ir::isCarriedKey(key);
    if (std::find(names_->begin(), names_->end(), key) != names_->end())
      return true;
    auto matches = [&](std::string_view pattern) { return ir::globMatch(pattern, key); };
    return std::any_of(keys_->begin(), keys_->end(), matches);
  }

  Option<std::vector<std::string>> keys_{
      options(), "keys",
      "patterns (`*`, `?`) of the keys to remove; by default all except reserved keys and those "
      "that describe one operation only"};
  Option<std::vector<std::string>> names_{
      options(), "names", "further keys to remove, in which `*` and `?` stand for themselves"};
};

} // namespace

std::unique_ptr<pass::Pass> createStripPass() { return std::make_unique<Strip>(); }

} // namespace hlotag::passes
