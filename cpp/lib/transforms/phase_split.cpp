// SPDX-License-Identifier: Apache-2.0
#include "phase_split.h"
#include "function_copies.h"

#include <vector>

namespace hlotag::transforms {

namespace {

using analysis::CallGraph;

class Splitter {
public:
  Splitter(pass::PassContext &ctx, analysis::Provenance &provenance,
           const std::function<bool(ir::Operation)> &dependsOnPhase)
      : ctx_(ctx), provenance_(provenance), dependsOnPhase_(dependsOnPhase),
        graph_(provenance.calls()) {}

  bool run() {
    if (!graph_.hasCalls())
      return false;
    reach();
    findDependent();
    return split();
  }

private:
  const std::vector<CallGraph::Function> &functions() const { return graph_.functions(); }

  bool isShared(size_t f) const { return isForward_[f] && isBackward_[f]; }

  void reach();
  void findDependent();
  bool split();
  void redirect(ir::Operation function, size_t f, bool isBackward);

  pass::PassContext &ctx_;
  analysis::Provenance &provenance_;
  const std::function<bool(ir::Operation)> &dependsOnPhase_;
  const CallGraph &graph_;

  std::vector<bool> isTransposed_;             // by call site, without its callers
  std::vector<bool> isForward_, isBackward_;   // by function: the phases that reach it
  std::vector<bool> isDependent_;              // by function, callees included
  std::vector<ir::Operation> backward_;        // by function: the copy, or null
  std::vector<ir::FlatSymbolRefAttr> symbols_; // of the copies
};

void Splitter::reach() {
  isForward_.resize(functions().size());
  isBackward_.resize(functions().size());
  for (const CallGraph::CallSite &site : graph_.callSites())
    isTransposed_.push_back(provenance_.isTransposed(site.op));
  struct Visit {
    size_t function;
    bool isBackward;
  };
  std::vector<Visit> pending;
  auto enter = [&](size_t f, bool isBackward) {
    std::vector<bool> &reached = isBackward ? isBackward_ : isForward_;
    if (reached[f])
      return;
    reached[f] = true;
    pending.push_back({f, isBackward});
  };
  for (size_t f = 0; f < functions().size(); ++f)
    if (functions()[f].isRoot())
      enter(f, false);
  while (!pending.empty()) {
    Visit visit = pending.back();
    pending.pop_back();
    for (size_t site : functions()[visit.function].calls)
      if (size_t callee = graph_.callSites()[site].callee; callee != CallGraph::kNone)
        enter(callee, visit.isBackward || isTransposed_[site]);
  }
}

void Splitter::findDependent() {
  isDependent_.resize(functions().size());
  for (size_t f : graph_.calleesFirst()) {
    if (!isShared(f))
      continue;
    bool depends = false;
    for (size_t site : functions()[f].calls)
      if (size_t callee = graph_.callSites()[site].callee; callee != CallGraph::kNone)
        depends |= isDependent_[callee];
    isDependent_[f] =
        depends || !ir::walk(functions()[f].op, [&](ir::Operation op) {
          return dependsOnPhase_(op) ? ir::WalkResult::Interrupt : ir::WalkResult::Advance;
        });
  }
}

bool Splitter::split() {
  backward_.resize(functions().size());
  symbols_.resize(functions().size());
  FunctionCopies copies(ctx_);
  bool any = false;
  // Copy before any change, so that all copies have the original body.
  for (size_t f = 0; f < functions().size(); ++f) {
    if (!isDependent_[f])
      continue;
    backward_[f] = copies.copy(functions()[f].op, functions()[f].op);
    symbols_[f] = copies.symbolOf(backward_[f]);
    any = true;
  }
  for (size_t f = 0; any && f < functions().size(); ++f) {
    if (backward_[f])
      redirect(backward_[f], f, true);
    redirect(functions()[f].op, f, !isForward_[f] && isBackward_[f]);
  }
  return any;
}

/// Makes the backward calls in `function`, which is `f` or its copy, call the copies.
void Splitter::redirect(ir::Operation function, size_t f, bool isBackward) {
  graph_.forEachSite(f, function, [&](ir::Operation op, size_t number) {
    const CallGraph::CallSite &site = graph_.callSites()[number];
    bool isMoved = site.callee != CallGraph::kNone && backward_[site.callee];
    if (isMoved && (isBackward || isTransposed_[number]))
      retarget(ctx_, site, op, symbols_[site.callee]);
  });
}

} // namespace

bool splitByPhase(pass::PassContext &ctx, analysis::Provenance &provenance,
                  const std::function<bool(ir::Operation)> &dependsOnPhase) {
  return Splitter(ctx, provenance, dependsOnPhase).run();
}

} // namespace hlotag::transforms
