// SPDX-License-Identifier: Apache-2.0
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
    // Pre-order: a parent gets the entries of its ancestors before it passes them on.
    const ir::OpList &operations = ctx.operations();
    for (size_t p = 0; p < operations.size(); ++p) {
      const ir::OpList::Item &parent = operations[p];
      if (!parent.hasRegions || !ctx.ids().isTaggable(parent.op, parent.name))
        continue;
      ir::DictionaryAttr entries = ctx.tags().carried(parent.op);
      if (!entries)
        continue;
      for (size_t i = p + 1; i < operations.after(p); i = operations.after(i))
        if (ctx.ids().isTaggable(operations[i].op, operations[i].name))
          ctx.tags().add(operations[i].op, entries, {"in its region", parent.op});
    }
  }
};

} // namespace

std::unique_ptr<pass::Pass> createPropagateRegionsPass() {
  return std::make_unique<PropagateRegions>();
}

} // namespace hlotag::passes
