// SPDX-License-Identifier: Apache-2.0
#include "hlotag/analysis/call_graph.h"
#include "hlotag/pass/pass.h"
#include "hlotag/passes/passes.h"
#include "transforms/specialize.h"

#include <algorithm>

namespace hlotag::passes {

namespace {

using namespace pass;
using analysis::CallGraph;
using ir::DictionaryAttr;

/// Gives each function the entries that its calls pass to it.
class Entries {
public:
  Entries(PassContext &ctx, const CallGraph &graph, size_t maxClones)
      : ctx_(ctx), graph_(graph), specializer_(ctx, graph), maxClones_(maxClones) {}

  void run() {
    bool anyEntries = false;
    for (const CallGraph::CallSite &site : graph_.callSites())
      anyEntries |= bool(callEntries_.emplace_back(ctx_.tags().carried(site.op)));
    if (!anyEntries)
      return;
    summarize();
    specializer_.reach({}, [&](size_t site, DictionaryAttr outer) { return pass(site, outer); });
    checkNumber();
    specializer_.write([](size_t) { return true; });
    for (const auto &variant : specializer_.variants()) {
      if (!variant.key)
        continue;
      ir::OpList body(variant.op);
      for (size_t i = 0; i < body.size(); i = body.next(i, ctx_.ids().module))
        if (ctx_.ids().isTaggable(body[i].op, body[i].name))
          ctx_.tags().add(body[i].op, variant.key, {"in the function it calls", variant.caller});
    }
  }

private:
  const std::vector<CallGraph::Function> &functions() const { return graph_.functions(); }

  /// Reads the keys that all operations of a function share.
  void summarize() {
    sharedKeys_.resize(functions().size());
    hasBody_.resize(functions().size());
    for (size_t f = 0; f < functions().size(); ++f) {
      if (functions()[f].callers.empty())
        continue;
      const ir::OpList &operations = ctx_.operations();
      size_t start = functions()[f].index, end = operations.after(start);
      // Ends once no shared key is left: the rest of the body cannot add one.
      for (size_t i = start; i < end && (!hasBody_[f] || sharedKeys_[f]);
           i = operations.next(i, ctx_.ids().module)) {
        if (!ctx_.ids().isTaggable(operations[i].op, operations[i].name))
          continue;
        DictionaryAttr entries = ctx_.tags().get(operations[i].op);
        auto isShared = [&](ir::NamedAttribute entry) {
          return entries && entries.lookup(entry.name.str());
        };
        sharedKeys_[f] = hasBody_[f] ? ctx_.tags().select(sharedKeys_[f], isShared) : entries;
        hasBody_[f] = true;
      }
    }
  }

  /// Returns the entries that a call passes, without those that change nothing in the body: keys
  /// that every operation has. Its calls have them too, so they do not change callees either.
  DictionaryAttr pass(size_t site, DictionaryAttr outer) {
    checkNumber();
    size_t callee = graph_.callSites()[site].callee;
    if (!hasBody_[callee])
      return {};
    return ctx_.tags().remove(ctx_.tags().merge(callEntries_[site], outer), sharedKeys_[callee]);
  }

  void checkNumber() const {
    if (specializer_.variants().size() > functions().size() + maxClones_)
      throw ir::IRError("more than " + std::to_string(maxClones_) +
                            " copies of functions would be needed for the entries that calls hand "
                            "to them; see option 'max-clones'",
                        functions()[specializer_.variants().back().function].op.location().raw());
  }

  PassContext &ctx_;
  const CallGraph &graph_;
  transforms::Specializer<DictionaryAttr> specializer_;
  size_t maxClones_;
  std::vector<DictionaryAttr> callEntries_; // by call site
  std::vector<DictionaryAttr> sharedKeys_;  // by function
  std::vector<bool> hasBody_;               // by function: an operation may carry entries
};

class PropagateCalls final : public Pass {
public:
  PropagateCalls()
      : Pass({"hlotag-propagate-calls", "HlotagPropagateCalls",
              "Pass the entries of a call to the body of the function it calls"}) {}

  void run(PassContext &ctx) override {
    CallGraph graph(ctx.operations(), ctx.ids());
    Entries(ctx, graph, size_t(std::max<int64_t>(*maxClones_, 0))).run();
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
