// SPDX-License-Identifier: Apache-2.0
#include "hlotag/analysis/entries.h"
#include "hlotag/analysis/pairing.h"
#include "hlotag/pass/pass.h"
#include "hlotag/passes/passes.h"

#include <algorithm>

namespace hlotag::passes {

namespace {

using namespace pass;

class PropagateAutodiff final : public PassBase<PropagateAutodiff> {
public:
  static const PassInfo &staticInfo();
  LogicalResult run(PassContext &ctx) override;

private:
  /// What operations derived from `primal` get.
  analysis::Entries entriesFor(analysis::EntryCarrier &carrier, ir::Operation primal) const;

  Option<std::string> seeds_{options(),
                             "seeds",
                             "which entries to extend: all, or those that rules attached",
                             "all",
                             {"all", "attached"}};
  Option<double> minConfidence_{options(), "min-confidence",
                                "least confidence (0 to 1) in a pair of operations to use it", 0.9};
};

const PassInfo &PropagateAutodiff::staticInfo() {
  static const PassInfo info{
      "hlotag-propagate-autodiff", "HlotagPropagateAutodiff",
      "Hand entries from forward operations to the backward operations derived from them",
      R"(Autodiff gives a backward operation the scope and source line of the forward operation it was
derived from, but not its frontend attributes. This pass pairs them from the module alone: scope and
line must agree, the order must be the one in which JAX transposes, and primitives, types and shared
values decide among what is left. Rematerialized copies are paired too. Entries go only where the
pairing is at least `min-confidence` sure, or where all operations that it may be hand on the same,
and never replace one with the same key.

With `seeds=attached` only entries in `hlotag.attached` are handed on; where an operation also has
`hlotag.derived`, derived operations get the entries of that instead.

Before:

```mlir
%0 = stablehlo.dot_general %x, %w {mhlo.frontend_attributes = {k = "v"}} ... loc("jit(f)/jvp(a)/dot_general")
%1 = stablehlo.dot_general %g, %w ... loc("jit(f)/transpose(jvp(a))/dot_general")
```

After:

```mlir
%0 = stablehlo.dot_general %x, %w {mhlo.frontend_attributes = {k = "v"}} ... loc("jit(f)/jvp(a)/dot_general")
%1 = stablehlo.dot_general %g, %w {mhlo.frontend_attributes = {k = "v"}} ... loc("jit(f)/transpose(jvp(a))/dot_general")
```)"};
  return info;
}

analysis::Entries PropagateAutodiff::entriesFor(analysis::EntryCarrier &carrier,
                                                ir::Operation primal) const {
  analysis::Entries own = carrier.entriesOf(primal);
  if (!own.derived)
    return {*seeds_ == "all" ? own.all : own.attached, own.attached, {}};
  analysis::Entries result;
  // A rule may give derived operations something else, which replaces what it attached.
  result.attached = own.derived.empty() ? ir::DictionaryAttr() : own.derived;
  result.all = result.attached;
  if (*seeds_ == "all")
    result.all = carrier.merge({carrier.without(own.all, own.attached), {}, {}}, result).all;
  return result;
}

LogicalResult PropagateAutodiff::run(PassContext &ctx) {
  bool isConfidence = *minConfidence_ >= 0 && *minConfidence_ <= 1; // not a number is none
  if (!isConfidence)
    return ctx.emitError(ctx.module(), "the option 'min-confidence' must be from 0 to 1");
  if (*seeds_ == "attached" && !ctx.tags().anyAttached(ctx.operations()))
    return success();
  analysis::EntryCarrier carrier(ctx.rewriter(), ctx.tags(), ctx.ids());
  // Pairing costs more than anything else here: not without an entry to hand on.
  const ir::OpList &operations = ctx.operations();
  auto isSeed = [&](const ir::OpList::Entry &entry) {
    return carrier.isTaggable(entry.name) && bool(entriesFor(carrier, entry.op));
  };
  if (std::none_of(operations.begin(), operations.end(), isSeed))
    return success();

  analysis::Provenance provenance(operations);
  ir::Operation function; // of the pair before
  ir::DictionaryAttr takenAway;
  auto takenAwayIn = [&](ir::Operation callee) {
    if (callee == function)
      return takenAway;
    function = callee;
    takenAway = {};
    for (ir::Operation call : provenance.callsOf(callee))
      if (ir::DictionaryAttr all = ir::TagWriter::get(call))
        takenAway = ctx.tags().merge(takenAway, carrier.without(all, carrier.carried(all)));
    return takenAway;
  };
  analysis::pairBackward(operations, provenance, [&](const analysis::Pair &pair) {
    float atBest = std::max(pair.confidence, pair.agreed);
    if (atBest < *minConfidence_ || !carrier.isTaggable(pair.derived))
      return;
    analysis::Entries entries = entriesFor(carrier, pair.primal);
    // Where all that it may stem from hand on the same, it does not matter which it is.
    auto agrees = [&](ir::Operation rival) { return entriesFor(carrier, rival) == entries; };
    bool allAgree = pair.agreed > pair.confidence &&
                    std::all_of(pair.rivals.begin(), pair.rivals.end(), agrees);
    float confidence = allAgree ? pair.agreed : pair.confidence;
    if (!entries || confidence < *minConfidence_)
      return;
    // What a loop calls to fill its stacks stems from the loop: what the call lost is not back
    // there.
    if (ir::DictionaryAttr taken = takenAwayIn(pair.function)) {
      entries.all = carrier.without(entries.all, taken);
      entries.attached = carrier.without(entries.attached, taken);
    }
    if (entries)
      carrier.give(pair.derived, entries, {"derived by autodiff", pair.primal, confidence});
  });
  return success();
}

} // namespace

std::unique_ptr<Pass> createPropagateAutodiffPass() {
  return std::make_unique<PropagateAutodiff>();
}

} // namespace hlotag::passes
