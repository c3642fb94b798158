// SPDX-License-Identifier: Apache-2.0
#include "hlotag/analysis/entries.h"
#include "hlotag/pass/pass.h"
#include "hlotag/passes/passes.h"

namespace hlotag::passes {

namespace {

using namespace pass;

class PropagateRegions final : public Pass {
public:
  PropagateRegions()
      : Pass({"hlotag-propagate-regions", "HlotagPropagateRegions",
              "Pass the entries of an operation to all operations in its regions"}) {}

  void run(PassContext &ctx) override {
    analysis::EntryCarrier carrier(ctx.rewriter(), ctx.tags(), ctx.ids());
    // Pre-order: a parent gets the entries of its ancestors before it passes them on.
    const ir::OpList &operations = ctx.operations();
    for (size_t p = 0; p < operations.size(); ++p) {
      const ir::OpList::Item &parent = operations[p];
      if (!parent.hasRegions || !carrier.isTaggable(parent))
        continue;
      ir::DictionaryAttr entries = carrier.entriesOf(parent.op);
      if (!entries)
        continue;
      for (size_t i = p + 1; i < operations.after(p); i = operations.after(i))
        if (carrier.isTaggable(operations[i]))
          ctx.tags().add(operations[i].op, entries, {"in its region", parent.op});
    }
  }
};

} // namespace

std::unique_ptr<pass::Pass> createPropagateRegionsPass() {
  return std::make_unique<PropagateRegions>();
}

} // namespace hlotag::passes
