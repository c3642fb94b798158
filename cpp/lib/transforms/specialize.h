// SPDX-License-Identifier: Apache-2.0
//
// Which functions need copies, so that calls that pass different things have bodies of their own?
#pragma once

#include "hlotag/analysis/call_graph.h"
#include "hlotag/pass/pass.h"

#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace hlotag::transforms {

/// Copies functions of one module. Reads the symbols once: nothing else may add symbols meanwhile.
class FunctionCopies {
public:
  explicit FunctionCopies(pass::PassContext &ctx);

  /// Inserts a private copy of `function` after `after`, with the first free name of `f_0`, `f_1`,
  /// ...
  ir::Operation copy(ir::Operation function, ir::Operation after);

private:
  std::string makeName(const std::string &base);

  pass::PassContext &ctx_;
  ir::Identifier visibility_;
  std::unordered_set<std::string> names_;
  std::unordered_map<std::string, size_t> nextNumber_; // by base
};

/// Changes the callee of a call. `op` is the call of `site`, or its copy in a copy of the caller.
void retarget(pass::PassContext &ctx, const analysis::CallGraph::CallSite &site, ir::Operation op,
              ir::Operation function);

/// Finds the variants that the program reaches, then creates them. A `Key` is what a call passes.
template <class Key> class Specializer {
public:
  static constexpr size_t kNoVariant = size_t(-1);
  /// A function with what its calls pass to it.
  struct Variant {
    size_t function;
    Key key;
    ir::Operation caller; ///< the first call that passes the key, or null
    std::vector<size_t> callees =
        {};                ///< the variant that each call in the body calls, or kNoVariant
    ir::Operation op = {}; ///< the function or its copy; null if another variant has the function
  };
  /// Returns what a call passes in a function that is called with `outer`.
  using KeyAt = std::function<Key(size_t site, Key outer)>;

  Specializer(pass::PassContext &ctx, const analysis::CallGraph &graph)
      : ctx_(ctx), graph_(graph), numVariants_(graph.functions().size()) {}

  /// Functions that may run without being called have the key `none`.
  void reach(Key none, const KeyAt &keyAt) {
    none_ = none;
    for (size_t f = 0; f < functions().size(); ++f)
      if (functions()[f].isRoot())
        variantOf(f, none, {});
    follow(keyAt);
    // Those that are called only from dead cycles.
    for (size_t f = 0; f < functions().size(); ++f)
      if (!numVariants_[f])
        variantOf(f, none, {});
    follow(keyAt);
  }

  const std::vector<Variant> &variants() const { return variants_; }
  bool isShared(size_t function) const { return numVariants_[function] > 1; }

  /// Copies functions for their variants, except the first one. `isSplit` tells which functions
  /// need copies. Returns whether there are any.
  bool write(const std::function<bool(size_t)> &isSplit) {
    std::vector<ir::Operation> last(functions().size()); // the function or its newest copy
    auto keep = [&](Variant &variant) {
      variant.op = last[variant.function] = functions()[variant.function].op;
    };
    for (Variant &variant : variants_)
      if (variant.key == none_)
        keep(variant);
    // If no call needs the function unchanged, its first variant needs no copy.
    for (Variant &variant : variants_)
      if (!last[variant.function])
        keep(variant);
    // Copy before any change, so that all copies have the original body.
    FunctionCopies copies(ctx_);
    bool any = false;
    for (Variant &variant : variants_) {
      if (variant.op || !isSplit(variant.function))
        continue;
      ir::Operation &previous = last[variant.function];
      previous = variant.op = copies.copy(functions()[variant.function].op, previous);
      any = true;
    }
    for (const Variant &variant : variants_)
      if (any && variant.op)
        redirect(variant);
    return any;
  }

private:
  const std::vector<analysis::CallGraph::Function> &functions() const { return graph_.functions(); }

  size_t variantOf(size_t function, Key key, ir::Operation caller) {
    auto [slot, isNew] = known_.try_emplace({function, key}, variants_.size());
    if (isNew) {
      variants_.push_back({function, key, caller});
      ++numVariants_[function];
    }
    return slot->second;
  }

  /// Finds the variants that the known variants call.
  void follow(const KeyAt &keyAt) {
    for (; numFollowed_ < variants_.size(); ++numFollowed_) {
      auto [function, key, caller, callees, op] = variants_[numFollowed_];
      for (size_t site : functions()[function].calls) {
        const analysis::CallGraph::CallSite &call = graph_.callSites()[site];
        callees.push_back(call.callee == analysis::CallGraph::kNoFunction
                              ? kNoVariant
                              : variantOf(call.callee, keyAt(site, key), call.op));
      }
      variants_[numFollowed_].callees = std::move(callees);
    }
  }

  void redirect(const Variant &variant) {
    size_t nextCall = 0;
    graph_.forEachSite(variant.function, variant.op, [&](ir::Operation call, size_t site) {
      size_t callee = variant.callees[nextCall++];
      if (callee == kNoVariant)
        return;
      // Change only calls with another callee. The callees of a copy are read from the original.
      ir::Operation op = variants_[callee].op;
      if (op && op != functions()[variants_[callee].function].op)
        retarget(ctx_, graph_.callSites()[site], call, op);
    });
  }

  pass::PassContext &ctx_;
  const analysis::CallGraph &graph_;
  Key none_{};
  std::vector<Variant> variants_;
  size_t numFollowed_ = 0;
  std::vector<size_t> numVariants_;                // by function
  std::map<std::pair<size_t, Key>, size_t> known_; // by function and key
};

} // namespace hlotag::transforms
