// SPDX-License-Identifier: Apache-2.0
#include "hlotag/analysis/call_graph.h"
#include "hlotag/analysis/entries.h"
#include "hlotag/pass/pass.h"
#include "hlotag/passes/passes.h"
#include "transforms/function_copies.h"

#include <map>

namespace hlotag::passes {

namespace {

using namespace pass;
using analysis::CallGraph;
using ir::DictionaryAttr;

constexpr size_t kNone = CallGraph::kNone;

/// A function with the entries that its calls pass to it.
struct Variant {
  size_t function;
  DictionaryAttr entries;      ///< without entries that change nothing in the body
  ir::Operation caller;        ///< the first call with these entries, or null
  std::vector<size_t> callees; ///< the variant that each call in the body calls, or kNone
  ir::Operation op;            ///< the function or its copy
  ir::FlatSymbolRefAttr symbol;
};

/// Finds the variants that the program reaches, then creates them.
class Specializer {
public:
  Specializer(PassContext &ctx, CallGraph &graph, size_t maxClones)
      : ctx_(ctx), graph_(graph), carrier_(ctx.rewriter(), ctx.tags(), ctx.ids()),
        maxClones_(maxClones) {}

  void run() {
    if (!summarize())
      return;
    for (size_t f = 0; f < functions().size(); ++f)
      if (functions()[f].isRoot())
        variantOf(f, {});
    reach();
    // Functions called only from dead cycles stay unchanged.
    for (size_t f = 0; f < functions().size(); ++f)
      if (!isReached_[f])
        variantOf(f, {});
    reach();
    assignOperations();
    for (const Variant &variant : variants_)
      write(variant);
  }

private:
  const std::vector<CallGraph::Function> &functions() const { return graph_.functions(); }

  /// Reads the entries of all calls, and the keys that all operations of a function share. Returns
  /// false if no call has entries.
  bool summarize() {
    bool anyEntries = false;
    for (const CallGraph::CallSite &site : graph_.callSites())
      anyEntries |= bool(callEntries_.emplace_back(carrier_.entriesOf(site.op)));
    if (!anyEntries)
      return false;
    sharedKeys_.resize(functions().size());
    hasBody_.resize(functions().size());
    isReached_.resize(functions().size());
    for (size_t f = 0; f < functions().size(); ++f) {
      if (functions()[f].callers.empty())
        continue;
      const ir::OpList &operations = ctx_.operations();
      size_t start = functions()[f].index, end = operations.after(start);
      // Ends once no shared key is left: the rest of the body cannot add one.
      for (size_t i = start; i < end && (!hasBody_[f] || sharedKeys_[f]);
           i = operations.next(i, ctx_.ids().module)) {
        if (!carrier_.isTaggable(operations[i]))
          continue;
        DictionaryAttr entries = ctx_.tags().get(operations[i].op);
        sharedKeys_[f] = hasBody_[f] ? carrier_.selectSharedKeys(sharedKeys_[f], entries) : entries;
        hasBody_[f] = true;
      }
    }
    return true;
  }

  size_t variantOf(size_t function, DictionaryAttr entries, ir::Operation caller = {}) {
    if (!hasBody_[function]) {
      entries = {};
    } else if (entries) {
      // Drop keys that every operation of the body has: they change neither the body nor, as its
      // calls have them too, the callees.
      entries = carrier_.remove(entries, sharedKeys_[function]);
    }
    auto [slot, isNew] = known_.try_emplace({function, entries}, variants_.size());
    if (isNew)
      variants_.push_back({function, entries, caller, {}, {}, {}});
    isReached_[function] = true;
    return slot->second;
  }

  /// Finds the variants that the known variants call.
  void reach() {
    for (; numResolved_ < variants_.size(); ++numResolved_) {
      resolveCallees(numResolved_);
      if (variants_.size() > functions().size() + maxClones_)
        throw ir::IRError(
            "more than " + std::to_string(maxClones_) +
                " copies of functions would be needed for the entries that calls hand "
                "to them; see option 'max-clones'",
            functions()[variants_.back().function].op.location().raw());
    }
  }

  void resolveCallees(size_t variant) {
    // A copy, because variantOf() reallocates the variants.
    size_t function = variants_[variant].function;
    DictionaryAttr entries = variants_[variant].entries;
    std::vector<size_t> callees;
    for (size_t site : functions()[function].calls) {
      const CallGraph::CallSite &call = graph_.callSites()[site];
      DictionaryAttr handed = ctx_.tags().merge(callEntries_[site], entries);
      callees.push_back(call.callee == kNone ? kNone : variantOf(call.callee, handed, call.op));
    }
    variants_[variant].callees = std::move(callees);
  }

  /// Decides which variant keeps the original function, and copies it for the others.
  void assignOperations() {
    std::vector<ir::Operation> last(functions().size()); // the function or its newest copy
    auto keep = [&](Variant &variant) {
      variant.op = last[variant.function] = functions()[variant.function].op;
      variant.symbol =
          ir::FlatSymbolRefAttr::get(ctx_.context(), functions()[variant.function].name);
    };
    for (Variant &variant : variants_)
      if (!variant.entries)
        keep(variant);
    // If no call needs the private function unchanged, its first variant needs no copy.
    for (Variant &variant : variants_)
      if (!last[variant.function])
        keep(variant);

    // Copy before any change, so that all copies have the original body.
    transforms::FunctionCopies copies(ctx_);
    for (Variant &variant : variants_) {
      if (variant.op)
        continue;
      ir::Operation &previous = last[variant.function];
      previous = variant.op = copies.copy(functions()[variant.function].op, previous);
      variant.symbol = copies.symbolOf(variant.op);
    }
  }

  void write(const Variant &variant) {
    size_t nextCall = 0;
    graph_.forEachSite(variant.function, variant.op, [&](ir::Operation call, size_t site) {
      size_t callee = variant.callees[nextCall++];
      // Change only calls with another callee. The callees of a copy are read from the original.
      if (callee != kNone && variants_[callee].op != functions()[variants_[callee].function].op)
        transforms::retarget(ctx_, graph_.callSites()[site], call, variants_[callee].symbol);
    });
    if (!variant.entries)
      return;
    ir::OpList body(variant.op);
    for (size_t i = 0; i < body.size(); i = body.next(i, ctx_.ids().module))
      if (carrier_.isTaggable(body[i]))
        ctx_.tags().add(body[i].op, variant.entries, {"in the function it calls", variant.caller});
  }

  PassContext &ctx_;
  CallGraph &graph_;
  analysis::EntryCarrier carrier_;
  size_t maxClones_;

  std::vector<DictionaryAttr> callEntries_; // by call site
  std::vector<DictionaryAttr> sharedKeys_;  // by function
  std::vector<bool> hasBody_;               // by function: an operation may carry entries

  std::vector<Variant> variants_;
  size_t numResolved_ = 0; // variants whose callees are known
  std::vector<bool> isReached_;
  std::map<std::pair<size_t, DictionaryAttr>, size_t> known_; // by function and entries
};

class PropagateCalls final : public Pass {
public:
  PropagateCalls()
      : Pass({"hlotag-propagate-calls", "HlotagPropagateCalls",
              "Pass the entries of a call to the body of the function it calls"}) {}

  void run(PassContext &ctx) override {
    CallGraph graph(ctx.operations(), ctx.ids());
    if (!graph.hasCalls())
      return;
    Specializer(ctx, graph, size_t(*maxClones_ < 0 ? 0 : *maxClones_)).run();
  }

private:
  Option<int64_t> maxClones_{options(), "max-clones",
                             "fail rather than specialize functions more often than this", 65536};
};

} // namespace

std::unique_ptr<pass::Pass> createPropagateCallsPass() {
  return std::make_unique<PropagateCalls>();
}

} // namespace hlotag::passes
