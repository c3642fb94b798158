// SPDX-License-Identifier: Apache-2.0
#include "hlotag/analysis/entries.h"
#include "hlotag/derivation/derivation.h"
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
  analysis::Entries entriesFor(analysis::EntryCarrier &carrier,
                               const derivation::Operations &primal) const;

  Option<std::string> seeds_{options(),
                             "seeds",
                             "which entries to extend: all, or those that rules attached",
                             "all",
                             {"all", "attached"}};
};

const PassInfo &PropagateAutodiff::staticInfo() {
  static const PassInfo info{
      "hlotag-propagate-autodiff", "HlotagPropagateAutodiff",
      "Hand entries from forward operations to the backward operations derived from them",
      R"(Autodiff gives a backward operation the scope and source line of the forward operation it was
derived from, but not its frontend attributes. This pass finds that operation from the module
alone, by replaying the transposition: for each primitive a table says what its derivative emits
and takes. Where scope, line and data flow leave one equation, its entries are handed on; also where
they leave several that hand on the same. What stays unknown gets nothing, and no entry replaces one
with the same key. Rematerialized copies get the entries of their originals.

Some operations are not found. The figures are how many are, of those that autodiff derived in a program
of `tests/ground_truth.py`; before are those of the alignment that this replaces, at its default:

| operations | program | found | before | because |
| --- | --- | --- | --- | --- |
| of derivatives of derivatives | `hessian` of an MLP | 0% | 100% | primal and tangent have one name |
| of batched derivatives | `vmap(grad)` of an MLP | 0% | 100% | the table has derivatives, not their batched forms |
| that batching adds | `grad(vmap)` of an MLP | 82% | 73% | the same |
| of custom derivatives (`jax.nn.relu`) | conv net | 77% | 86% | users write what they emit |
| on constants only | branches | 82% | 100% | no value leads to their equation |
| in unrolled loops | decoder | 66% | 87% | all rounds have one place |
| in unrolled loops, computed again | decoder | 34% | 81% | the same |
| computed again by a policy of `jax.checkpoint` | decoder | 81% | 87% | copies are recognized by what they take |

Of MLPs and transformers, looped or not, 98% and more are found, and all products and reductions. What may be derived
from dead code is left alone, and so is what takes no residual where a primitive of the place has no row in the table.

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

analysis::Entries PropagateAutodiff::entriesFor(analysis::EntryCarrier &carrier,
                                                const derivation::Operations &primal) const {
  analysis::Entries result;
  for (ir::Operation op : primal)
    if (analysis::Entries entries = entriesFor(carrier, op))
      result = result ? carrier.merge(result, entries) : entries;
  return result;
}

LogicalResult PropagateAutodiff::run(PassContext &ctx) {
  if (*seeds_ == "attached" && !ctx.tags().anyAttached(ctx.operations()))
    return success();
  analysis::EntryCarrier carrier(ctx.rewriter(), ctx.tags(), ctx.ids());
  // The search costs more than anything else here: not without an entry to hand on.
  const ir::OpList &operations = ctx.operations();
  auto isSeed = [&](const ir::OpList::Entry &entry) {
    return carrier.isTaggable(entry.name) && bool(entriesFor(carrier, entry.op));
  };
  if (std::none_of(operations.begin(), operations.end(), isSeed))
    return success();

  analysis::Provenance provenance(operations);
  ir::Operation function; // of the operation before
  auto functionOf = [](ir::Operation op) {
    while (op && op.name().str() != "func.func")
      op = op.parent();
    return op;
  };
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
  derivation::findDerived(operations, provenance, [&](const derivation::Derivation &derivation) {
    if (!carrier.isTaggable(derivation.derived))
      return;
    // Where all that it may stem from hand on the same, it does not matter which it is.
    analysis::Entries entries = entriesFor(carrier, *derivation.primals[0]);
    auto agrees = [&](const derivation::Operations *primal) {
      return entriesFor(carrier, *primal) == entries;
    };
    if (!entries || !std::all_of(derivation.primals.begin(), derivation.primals.end(), agrees))
      return;
    // What a loop calls to fill its stacks stems from the loop: what the call lost is not back
    // there.
    if (ir::DictionaryAttr taken = takenAwayIn(functionOf(derivation.derived))) {
      entries.all = carrier.without(entries.all, taken);
      entries.attached = carrier.without(entries.attached, taken);
    }
    if (entries)
      carrier.give(derivation.derived, entries,
                   {"derived by autodiff", derivation.primals[0]->front(), 1.0});
  });
  return success();
}

} // namespace

std::unique_ptr<Pass> createPropagateAutodiffPass() {
  return std::make_unique<PropagateAutodiff>();
}

} // namespace hlotag::passes
