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
using ir::NamedAttribute;
using ir::Operation;
using ir::OpList;

/// What the operations of one region inherit. Of two values of a key, that of the inner operation
/// counts; an unset key is a value.
struct Inherited {
  size_t end = SIZE_MAX;      ///< index after the last operation of the region
  DictionaryAttr regions;     ///< of the operations around it in its function, unset keys too
  DictionaryAttr fromRegions; ///< `regions` without unset keys
  DictionaryAttr fromCaller;  ///< of the calls of its function, without the keys of `regions`
  Operation parent = {};      ///< the innermost operation with `regions`
  bool isApart = false;       ///< whether XLA makes it a computation of its own
};

/// Visits operations, each before those in its regions, with what they inherit.
class Walk {
public:
  Walk(PassContext &ctx, DictionaryAttr fromCaller) : ctx_(ctx), regions_(1) {
    regions_.back().fromCaller = fromCaller;
  }

  /// Calls `visit(index, inherited)` for the taggable operations at `begin` and in its regions.
  template <class Visit> void run(const OpList &operations, size_t begin, Visit visit) {
    for (size_t i = begin, end = operations.after(begin); i < end; ++i) {
      const OpList::Item &item = operations[i];
      while (regions_.back().end <= i)
        regions_.pop_back();
      if (item.name == ctx_.ids().module) { // Has symbols of its own, which no call here means.
        regions_.emplace_back().end = operations.after(i);
      } else if (ctx_.ids().isTaggable(item.op, item.name)) {
        visit(i, regions_.back());
        if (item.hasRegions)
          enter(item, operations.after(i));
      }
    }
  }

private:
  void enter(const OpList::Item &item, size_t end) {
    ir::TagWriter &tags = ctx_.tags();
    const Inherited &outer = regions_.back();
    DictionaryAttr own = tags.select(
        tags.get(item.op), [](NamedAttribute entry) { return ir::isCarriedKey(entry.name.str()); });
    bool isApart = ctx_.ids().hasComputations(item);
    if (!own && !outer.regions && (!isApart || outer.isApart))
      return;
    Inherited inner{end,     tags.merge(own, outer.regions), {}, tags.remove(outer.fromCaller, own),
                    item.op, outer.isApart || isApart};
    if (isApart) {
      inner.regions = tags.withoutXlaKeys(inner.regions);
      inner.fromCaller = tags.withoutXlaKeys(inner.fromCaller);
    }
    inner.fromRegions = tags.withoutUnset(inner.regions);
    regions_.push_back(inner);
  }

  PassContext &ctx_;
  std::vector<Inherited> regions_; // from the outermost to the innermost
};

/// Finds what each call passes, copies functions whose calls pass different entries, and tags.
class Propagator {
public:
  Propagator(PassContext &ctx, size_t maxClones)
      : ctx_(ctx), graph_(ctx.calls()), specializer_(ctx, graph_), maxClones_(maxClones) {}

  void run() {
    summarize();
    if (std::any_of(sites_.begin(), sites_.end(), [&](const Site &site) {
          return bool(ctx_.tags().withoutUnset(site.entries));
        })) {
      specializer_.reach({}, [&](size_t site, DictionaryAttr outer) { return pass(site, outer); });
      checkNumber();
      specializer_.write([](size_t) { return true; });
    }
    write();
  }

private:
  /// A call.
  struct Site {
    DictionaryAttr entries; ///< its own, and those of operations around it; unset keys too
    bool isApart = false;   ///< as `Inherited`
  };
  struct Summary {
    bool hasOperations = false;
    DictionaryAttr keys; ///< entries with the keys that its operations all have themselves
  };

  const std::vector<CallGraph::Function> &functions() const { return graph_.functions(); }

  void summarize() {
    sites_.resize(graph_.callSites().size());
    summaries_.resize(functions().size());
    for (size_t f = 0; f < functions().size(); ++f)
      summarize(functions()[f], summaries_[f]);
  }

  void summarize(const CallGraph::Function &function, Summary &summary) {
    if (function.calls.empty() && function.callers.empty())
      return;
    const OpList &operations = ctx_.operations();
    auto call = function.calls.begin();
    Walk(ctx_, {}).run(operations, function.index, [&](size_t i, const Inherited &inherited) {
      auto positionOf = [&](size_t site) { return graph_.callSites()[site].position; };
      for (; call != function.calls.end() && positionOf(*call) <= i - function.index; ++call)
        sites_[*call] = siteAt(operations[i].op, inherited);
      // An operation with regions answers for those in them.
      if (inherited.parent || function.callers.empty() || (summary.hasOperations && !summary.keys))
        return;
      DictionaryAttr own = ctx_.tags().get(operations[i].op);
      auto isShared = [&](NamedAttribute entry) { return own && own.lookup(entry.name.str()); };
      summary.keys = summary.hasOperations ? ctx_.tags().select(summary.keys, isShared) : own;
      summary.hasOperations = true;
    });
  }

  Site siteAt(Operation call, const Inherited &inherited) {
    DictionaryAttr entries = ctx_.tags().merge(ctx_.tags().get(call), inherited.regions);
    entries = ctx_.tags().select(
        entries, [](NamedAttribute entry) { return ir::isCarriedKey(entry.name.str()); });
    return {entries, inherited.isApart};
  }

  /// Returns the entries that a call passes in a function that is called with `outer`, without
  /// those that change nothing in the callee.
  DictionaryAttr pass(size_t site, DictionaryAttr outer) {
    checkNumber();
    const Summary &callee = summaries_[graph_.callSites()[site].callee];
    if (!callee.hasOperations)
      return {};
    const auto &[entries, isApart] = sites_[site];
    if (isApart)
      outer = ctx_.tags().withoutXlaKeys(outer);
    DictionaryAttr passed = ctx_.tags().withoutUnset(ctx_.tags().merge(entries, outer));
    return ctx_.tags().remove(passed, callee.keys);
  }

  void write() {
    ir::PointerMap<size_t> variantOf;
    for (size_t v = 0; v < specializer_.variants().size(); ++v)
      *variantOf.insert(specializer_.variants()[v].op.opaque()).first = v;
    const OpList &operations = ctx_.operations(); // with the copies
    for (size_t top = 1; top < operations.size(); top = operations.after(top)) {
      const size_t *variant = variantOf.find(operations[top].op.opaque());
      DictionaryAttr fromCaller;
      Operation caller;
      if (variant) {
        fromCaller = specializer_.variants()[*variant].key;
        caller = specializer_.variants()[*variant].caller;
      }
      Walk(ctx_, fromCaller).run(operations, top, [&](size_t i, const Inherited &inherited) {
        if (inherited.fromRegions)
          ctx_.tags().add(operations[i].op, inherited.fromRegions,
                          {"in its region", inherited.parent});
        if (inherited.fromCaller)
          ctx_.tags().add(operations[i].op, inherited.fromCaller,
                          {"in the function it calls", caller});
      });
    }
  }

  void checkNumber() const {
    if (specializer_.variants().size() > functions().size() + maxClones_)
      throw ir::IRError("more than " + std::to_string(maxClones_) +
                            " copies of functions would be needed for the entries that calls pass "
                            "to them; see option 'max-clones'",
                        functions()[specializer_.variants().back().function].op.location().raw());
  }

  PassContext &ctx_;
  const CallGraph &graph_; // until functions are copied
  transforms::Specializer<DictionaryAttr> specializer_;
  size_t maxClones_;
  std::vector<Site> sites_;        // by call site
  std::vector<Summary> summaries_; // by function
};

class Propagate final : public Pass {
public:
  Propagate()
      : Pass(
            {"hlotag-propagate", "HlotagPropagate",
             "Pass entries to the regions of an operation and to the function that a call calls"}) {
  }

  void run(PassContext &ctx) override {
    Propagator(ctx, size_t(std::max<int64_t>(*maxClones_, 0))).run();
  }

private:
  Option<int64_t> maxClones_{options(), "max-clones",
                             "fail rather than specialize functions more often than this", 65536};
};

} // namespace

std::unique_ptr<pass::Pass> createPropagatePass() { return std::make_unique<Propagate>(); }

} // namespace hlotag::passes
