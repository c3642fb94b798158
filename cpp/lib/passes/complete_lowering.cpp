// SPDX-License-Identifier: Apache-2.0
#include "analysis/primitives.h"
#include "hlotag/analysis/call_graph.h"
#include "hlotag/analysis/entries.h"
#include "hlotag/pass/pass.h"
#include "hlotag/passes/passes.h"

#include <optional>

namespace hlotag::passes {

namespace {

using namespace pass;
using analysis::CallGraph;
using analysis::Carried;

class CompleteLowering final : public PassBase<CompleteLowering> {
public:
  static const PassInfo &staticInfo();
  LogicalResult run(PassContext &ctx) override;

private:
  Option<std::string> seeds_{options(),
                             "seeds",
                             "which entries to extend: all, or only those that rules attached",
                             "all",
                             {"all", "attached"}};
};

const PassInfo &CompleteLowering::staticInfo() {
  static const PassInfo info{
      "hlotag-complete-lowering", "HlotagCompleteLowering",
      "Extend entries to all operations that one equation of JAX lowered to",
      R"md(An equation of JAX can lower to several operations, and JAX tags only those that own its results.
This pass gives the entries to the others, too:

- *Helpers*: operations in the same block and with the same location that the tagged one is computed from, and others
  that are computed from those.
- *Constants* whose users all have an entry, or are in regions of an operation that has it; and broadcasts of such
  constants.
- With `seeds=all`, operations that JAX wraps around tagged ones: calls of functions that JAX made for one primitive
  (not for a `jit`) and `while` loops, if all operations inside have an entry, and the barrier of a `jax.checkpoint`,
  if all its users have it.

All iterations of a Python loop have one location. So the pass leaves calls alone, and operations of the tagged one's
kind if the location's primitive names that kind, as `mul` names `stablehlo.multiply`: they may be results of other
iterations.

Keys that an operation has keep their value. Entries that describe one operation only
(`num_batch_dims`, `inlineable`, placements, everything Shardy writes) are not extended.

Before:

```mlir
%c = stablehlo.constant dense<3.0> : tensor<f32> loc("jit(f)")
%0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<4xf32> loc("jit(f)/mul")
%1 = stablehlo.multiply %x, %0 {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc("jit(f)/mul")
```

After:

```mlir
%c = stablehlo.constant {mhlo.frontend_attributes = {k = "v"}} dense<3.0> : tensor<f32> loc("jit(f)")
%0 = stablehlo.broadcast_in_dim %c, dims = [] {mhlo.frontend_attributes = {k = "v"}}
    : (tensor<f32>) -> tensor<4xf32> loc("jit(f)/mul")
%1 = stablehlo.multiply %x, %0 {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32> loc("jit(f)/mul")
```)md"};
  return info;
}

/// One tagged operation, as it was when the pass started.
struct Seed {
  ir::Operation op;
  ir::Location location;
  Carried entries;
};

class Completer {
public:
  Completer(PassContext &ctx, bool attachedOnly)
      : ctx_(ctx), carrier_(ctx.rewriter(), ctx.tags(), ctx.ids()), attachedOnly_(attachedOnly) {}

  void run() {
    collect();
    if (!anyEntries_)
      return;
    for (const Seed &seed : seeds_)
      completeHelpers(seed);
    if (!attachedOnly_)
      completeEnclosing();
    // Users follow their operands, so in reverse a broadcast is done before its constant.
    for (auto op = feeders_.rbegin(); op != feeders_.rend(); ++op)
      giveWhatUsersShare(*op);
  }

private:
  void collect();
  void completeHelpers(const Seed &seed);
  void completeEnclosing();

  /// Whether `op`, at the location of `seed`, may be the result of another equation.
  bool mayBeResult(ir::Operation op, ir::Operation seed) const {
    return op.name() == ctx_.ids().funcCall ||
           (op.name() == seed.name() && analysis::isResultOfItsPrimitive(seed));
  }
  void giveWhatUsersShare(ir::Operation op);
  /// The entries of `op` and, through regions, of the operations around it.
  Carried entriesWithRegions(ir::Operation op);
  bool isSplatOfConstant(ir::Operation op);
  bool isOfCheckpoint(ir::Operation op);
  /// The entries that all operations in the regions of `root` share, constants apart. Linear for
  /// nested loops if it is called for the inner ones first.
  ir::DictionaryAttr entriesOfBody(ir::Operation root);
  bool isLoweringOfPrimitive(const CallGraph::Function &function);

  PassContext &ctx_;
  analysis::EntryCarrier carrier_;
  bool attachedOnly_;

  bool anyEntries_ = false;
  std::vector<Seed> seeds_;
  std::vector<ir::Operation> feeders_; // get the entries that their users share
  std::vector<ir::Operation> loops_;
  ir::PointerMap<Carried> withRegions_;
  struct Body {
    bool isEmpty = true;
    ir::DictionaryAttr shared;
  };
  ir::PointerMap<Body> bodies_;
  bool anyCalls_ = false;
};

void Completer::collect() {
  const ir::OpIds &ids = ctx_.ids();
  ir::Location unknown = ir::Location::unknown(ctx_.context());
  bool wantsSeeds = !attachedOnly_ || ctx_.tags().anyAttached(ctx_.operations());
  for (const ir::OpList::Item &item : ctx_.operations()) {
    ir::Operation op = item.op;
    ir::Identifier name = item.name;
    if (name == ids.constant || (name == ids.broadcast && isSplatOfConstant(op)) ||
        (name == ids.barrier && !attachedOnly_ && isOfCheckpoint(op)))
      feeders_.push_back(op);
    else if (name == ids.whileOp)
      loops_.push_back(op);
    else if (name == ids.funcCall)
      anyCalls_ = true;
    // Without seeds, it is enough to find one tagged operation.
    if ((!wantsSeeds && anyEntries_) || !carrier_.isTaggable(item))
      continue;
    Carried entries = carrier_.entriesOf(op);
    anyEntries_ |= bool(entries);
    if (attachedOnly_)
      entries.all = entries.attached;
    if (!entries)
      continue;
    ir::Location location = op.location();
    if (location != unknown)
      seeds_.push_back({op, location, entries});
  }
}

void Completer::completeHelpers(const Seed &seed) {
  ir::Block block = seed.op.block();
  std::vector<ir::Operation> pending;
  auto visit = [&](ir::Operation op) {
    // Cheap tests first: most operands have another location.
    if (!op || op.location() != seed.location || op.block() != block || mayBeResult(op, seed.op))
      return;
    if (carrier_.isTaggable(op) &&
        carrier_.give(op, seed.entries, {"helper in its lowering", seed.op}))
      pending.push_back(op);
  };
  auto visitOperands = [&](ir::Operation op) {
    for (ir::Value operand : op.operands())
      visit(operand.definingOp());
    // Values that the body of a reduction or a conditional captures.
    for (ir::Region region : op.regions())
      for (ir::Block inner : region.blocks())
        for (ir::Operation nested : inner.operations())
          for (ir::Value operand : nested.operands())
            visit(operand.definingOp());
  };
  visitOperands(seed.op);
  while (!pending.empty()) {
    ir::Operation op = pending.back();
    pending.pop_back();
    visitOperands(op);
    // All users of a helper are in its equation.
    for (ir::Value result : op.results())
      for (ir::OpOperand use : result.uses())
        visit(use.owner());
  }
}

Carried Completer::entriesWithRegions(ir::Operation op) {
  // Outwards to an operation whose entries are known, and back: nesting may be deep.
  std::vector<ir::Operation> chain;
  Carried entries;
  for (; op && carrier_.isTaggable(op); op = op.parent()) {
    if (const Carried *known = withRegions_.find(op.opaque())) {
      entries = *known;
      break;
    }
    chain.push_back(op);
  }
  for (auto inner = chain.rbegin(); inner != chain.rend(); ++inner) {
    ir::DictionaryAttr present = ctx_.tags().get(*inner);
    entries.all = carrier_.remove(entries.all, present);
    entries.attached = carrier_.remove(entries.attached, present);
    entries = carrier_.merge(carrier_.entriesOf(*inner), entries);
    if (!(*inner).regions().empty())
      *withRegions_.insert((*inner).opaque()).first = entries;
  }
  return entries;
}

void Completer::giveWhatUsersShare(ir::Operation op) {
  std::optional<Carried> shared;
  ir::Operation previous;
  for (ir::Value result : op.results())
    for (ir::OpOperand use : result.uses()) {
      ir::Operation user = use.owner();
      if (user == previous)
        continue;
      previous = user;
      Carried entries = entriesWithRegions(user);
      if (shared)
        entries = {carrier_.intersect(shared->all, entries.all),
                   carrier_.intersect(shared->attached, entries.attached),
                   shared->derived == entries.derived ? shared->derived : ir::DictionaryAttr()};
      if (!entries)
        return;
      shared = entries;
    }
  if (shared)
    carrier_.give(op, *shared, {"all its users have it", previous});
}

bool Completer::isSplatOfConstant(ir::Operation op) {
  ir::Operation operand = op.operands().empty() ? ir::Operation() : op.operands()[0].definingOp();
  // A constant with another location is an equation of its own.
  return operand && operand.name() == ctx_.ids().constant && operand.location() == op.location();
}

bool Completer::isOfCheckpoint(ir::Operation op) {
  ir::NameLoc name = ir::dynCast<ir::NameLoc>(op.location());
  if (!name)
    return false;
  // A barrier that the user wrote is an equation of its own.
  std::string_view primitive = analysis::primitiveOf(name.name().str());
  return primitive == "remat2" || primitive == "checkpoint";
}

ir::DictionaryAttr Completer::entriesOfBody(ir::Operation root) {
  Body body;
  auto add = [&](ir::DictionaryAttr entries) {
    body.shared = body.isEmpty ? entries : carrier_.intersect(body.shared, entries);
    body.isEmpty = false;
  };
  ir::walk(root, [&](ir::Operation op) {
    if (op == root || !carrier_.isTaggable(op) || op.name() == ctx_.ids().constant)
      return ir::WalkResult::Advance;
    add(carrier_.selectCarried(ctx_.tags().get(op)));
    if (!body.shared)
      return ir::WalkResult::Interrupt;
    const Body *inner = bodies_.find(op.opaque());
    if (!inner)
      return ir::WalkResult::Advance;
    if (!inner->isEmpty)
      add(inner->shared);
    return body.shared ? ir::WalkResult::Skip : ir::WalkResult::Interrupt;
  });
  *bodies_.insert(root.opaque()).first = body;
  return body.shared;
}

bool Completer::isLoweringOfPrimitive(const CallGraph::Function &function) {
  if (!function.isPrivate)
    return false;
  // JAX ends the location name of a jitted function (scan body, checkpoint, ...) with ":". Tags on
  // all of such a function's operations are the user's, and do not tag the call.
  ir::NameLoc name = ir::dynCast<ir::NameLoc>(function.op.location());
  std::string_view text = name ? name.name().str() : std::string_view();
  return text.empty() || text.back() != ':';
}

void Completer::completeEnclosing() {
  // Inner loops come after outer ones in the walk.
  for (auto loop = loops_.rbegin(); loop != loops_.rend(); ++loop)
    carrier_.give(*loop, {entriesOfBody(*loop), {}, {}}, {"all operations in its body have it"});
  if (!anyCalls_)
    return;
  CallGraph graph(ctx_.operations(), ctx_.ids());
  for (size_t f : graph.calleesFirst()) {
    const CallGraph::Function &function = graph.functions()[f];
    if (function.callers.empty() || !isLoweringOfPrimitive(function))
      continue;
    Carried entries{entriesOfBody(function.op), {}, {}};
    if (!entries)
      continue;
    // The computations of a custom call are parts of it, as reducers are, so they do not tag it.
    for (size_t site : function.callers)
      if (ir::Operation call = graph.callSites()[site].op; call.name() == ctx_.ids().funcCall)
        carrier_.give(call, entries, {"all operations of the function have it", function.op});
  }
}

LogicalResult CompleteLowering::run(PassContext &ctx) {
  Completer(ctx, *seeds_ == "attached").run();
  return success();
}

} // namespace

std::unique_ptr<pass::Pass> createCompleteLoweringPass() {
  return std::make_unique<CompleteLowering>();
}

} // namespace hlotag::passes
