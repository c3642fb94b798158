// SPDX-License-Identifier: Apache-2.0
#include "phase_split.h"
#include "function_copies.h"

#include <algorithm>
#include <array>
#include <vector>

namespace hlotag::transforms {

namespace {

using analysis::CallGraph;

class Splitter {
public:
  Splitter(pass::PassContext &ctx, analysis::Provenance &provenance, bool ofCustom,
           const std::function<bool(ir::Operation)> &dependsOnPhase)
      : ctx_(ctx), provenance_(provenance), ofCustom_(ofCustom), dependsOnPhase_(dependsOnPhase),
        graph_(provenance.calls()) {}

  bool run() {
    if (!graph_.hasCalls())
      return false;
    reach();
    findDependent();
    return split();
  }

private:
  /// Of a call: outside of backward passes; in a backward rule of the user's; derived by autodiff.
  enum Phase : uint8_t { Forward, Custom, Derived };
  static constexpr size_t kPhases = 3;
  template <class T> using ByPhase = std::array<T, kPhases>;
  /// What a call site adds to the phase of its function.
  struct Site {
    bool isTransposed = false;
    int derivations = 0;
  };

  const std::vector<CallGraph::Function> &functions() const { return graph_.functions(); }

  bool isShared(size_t f) const {
    return std::count(isReached_[f].begin(), isReached_[f].end(), true) > 1;
  }
  Phase firstPhase(size_t f) const {
    return Phase(std::find(isReached_[f].begin(), isReached_[f].end(), true) -
                 isReached_[f].begin());
  }
  /// The phase of a call in a function that is called in `outer`.
  Phase phaseAt(size_t site, Phase outer) const {
    if (int(outer == Derived) + sites_[site].derivations > 0)
      return Derived;
    return ofCustom_ && (outer != Forward || sites_[site].isTransposed) ? Custom : Forward;
  }

  void reach() {
    isReached_.resize(functions().size());
    sites_.resize(graph_.callSites().size());
    for (size_t f = 0; f < functions().size(); ++f)
      for (size_t site : functions()[f].calls) {
        const analysis::Origin &origin = provenance_.of(graph_.callSites()[site].op);
        sites_[site] = {origin.transposed,
                        origin.derivations - provenance_.ofCallers(f).derivations};
      }
    struct Visit {
      size_t function;
      Phase phase;
    };
    std::vector<Visit> pending;
    auto enter = [&](size_t f, Phase phase) {
      if (isReached_[f][phase])
        return;
      isReached_[f][phase] = true;
      pending.push_back({f, phase});
    };
    for (size_t f = 0; f < functions().size(); ++f)
      if (functions()[f].isRoot())
        enter(f, Forward);
    while (!pending.empty()) {
      Visit visit = pending.back();
      pending.pop_back();
      for (size_t site : functions()[visit.function].calls)
        if (size_t callee = graph_.callSites()[site].callee; callee != CallGraph::kNone)
          enter(callee, phaseAt(site, visit.phase));
    }
  }

  void findDependent() {
    isDependent_.resize(functions().size());
    for (size_t f : graph_.calleesFirst()) {
      if (!isShared(f))
        continue;
      bool depends = false;
      for (size_t site : functions()[f].calls)
        if (size_t callee = graph_.callSites()[site].callee; callee != CallGraph::kNone)
          depends |= isDependent_[callee];
      const ir::OpList &operations = ctx_.operations();
      const ir::OpList::Item *function = operations.begin() + functions()[f].index;
      auto dependsOnPhase = [&](const ir::OpList::Item &item) { return dependsOnPhase_(item.op); };
      isDependent_[f] =
          depends || std::any_of(function, function + 1 + function->numNested, dependsOnPhase);
    }
  }

  bool split() {
    copies_.resize(functions().size());
    symbols_.resize(functions().size());
    FunctionCopies copies(ctx_);
    bool any = false;
    // Copy before any change, so that all copies have the original body.
    for (size_t f = 0; f < functions().size(); ++f) {
      if (!isDependent_[f])
        continue;
      ir::Operation last = functions()[f].op;
      for (size_t phase = firstPhase(f) + 1; phase < kPhases; ++phase) {
        if (!isReached_[f][phase])
          continue;
        copies_[f][phase] = last = copies.copy(functions()[f].op, last);
        symbols_[f][phase] = copies.symbolOf(copies_[f][phase]);
        any = true;
      }
    }
    for (size_t f = 0; any && f < functions().size(); ++f) {
      for (Phase phase : {Custom, Derived})
        if (copies_[f][phase])
          redirect(copies_[f][phase], f, phase);
      if (firstPhase(f) < kPhases)
        redirect(functions()[f].op, f, firstPhase(f));
    }
    return any;
  }

  /// Makes the calls in `function`, which is `f` or a copy that is called in `phase`, call the
  /// copies.
  void redirect(ir::Operation function, size_t f, Phase phase) {
    graph_.forEachSite(f, function, [&](ir::Operation op, size_t number) {
      const CallGraph::CallSite &site = graph_.callSites()[number];
      if (site.callee == CallGraph::kNone)
        return;
      ir::FlatSymbolRefAttr symbol = symbols_[site.callee][phaseAt(number, phase)];
      if (symbol)
        retarget(ctx_, site, op, symbol);
    });
  }

  pass::PassContext &ctx_;
  analysis::Provenance &provenance_;
  bool ofCustom_;
  const std::function<bool(ir::Operation)> &dependsOnPhase_;
  const CallGraph &graph_;

  std::vector<Site> sites_;
  std::vector<ByPhase<bool>> isReached_; // by function
  std::vector<bool> isDependent_;        // by function, callees included
  // By function: the copies, or null. The function itself serves the first phase that reaches it.
  std::vector<ByPhase<ir::Operation>> copies_;
  std::vector<ByPhase<ir::FlatSymbolRefAttr>> symbols_;
};

} // namespace

bool splitByPhase(pass::PassContext &ctx, analysis::Provenance &provenance, bool ofCustom,
                  const std::function<bool(ir::Operation)> &dependsOnPhase) {
  return Splitter(ctx, provenance, ofCustom, dependsOnPhase).run();
}

} // namespace hlotag::transforms
