// SPDX-License-Identifier: Apache-2.0
#include "analysis/groups.h"
#include "hlotag/analysis/name_path.h"
#include "hlotag/pass/pass.h"
#include "hlotag/passes/passes.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hlotag::passes {

namespace {

using namespace pass;

class Finalizer {
public:
  Finalizer(PassContext &ctx, bool warns) : ctx_(ctx), warns_(warns) {}

  void run() {
    if (ctx_.module().hasAttr(ctx_.ids().tags.str()))
      fail(ctx_.module(), "the module still has 'hlotag.tags'; run hlotag-resolve first");
    for (const ir::OpList::Item &item : ctx_.operations())
      visit(item);
    if (hasGroups_)
      checkGroups();
    reportRest();
    restoreNames();
  }

private:
  /// So many warnings and so many errors are reported one by one.
  static constexpr size_t kMaxReports = 10;

  void report(ir::Operation op, const std::string &message, bool isError) {
    if (++numReports_[isError] > kMaxReports)
      return;
    if (isError)
      ctx_.emitError(op, message);
    else
      ctx_.emitWarning(op, message);
  }
  void fail(ir::Operation op, const std::string &message) {
    report(op, ir::concat({"'", op.name().str(), "' ", message}), /*isError=*/true);
  }

  struct Checked {
    std::string mistake;      ///< empty if the dictionary is fine
    bool isError = false;     ///< even if mistakes are warnings
    ir::DictionaryAttr final; ///< without unset entries; null if empty
    bool isInGroup = false;
  };

  /// Returns whether `entry` is a custom call that StableHLO rewrites or checks once shapes are
  /// known. With an unknown attribute such a call does not compile.
  bool refusesEntries(const ir::OpList::Item &item) {
    static constexpr std::string_view targets[] = {
        "shape_assertion", "stablehlo.dynamic_top_k", "stablehlo.dynamic_approx_top_k",
        "stablehlo.dynamic_reduce_window", "stablehlo.dynamic_rng_bit_generator"};
    if (item.name != ctx_.ids().customCall)
      return false;
    ir::StringAttr target = item.op.attrOf<ir::StringAttr>("call_target_name");
    return target &&
           std::find(std::begin(targets), std::end(targets), target.value()) != std::end(targets);
  }

  void visit(const ir::OpList::Item &item) {
    ir::Operation op = item.op;
    if (ir::Attribute entries = op.attr(ir::kFrontendAttributes)) {
      const Checked &checked = check(op, entries);
      ir::DictionaryAttr final = refusesEntries(item) ? ir::DictionaryAttr() : checked.final;
      if (!checked.isError && final != entries)
        ctx_.tags().set(op, final);
      hasGroups_ |= checked.isInGroup;
    }
    ctx_.rewriter().removeAttr(op, ctx_.ids().derived);
  }

  const Checked &check(ir::Operation op, ir::Attribute attr) {
    auto [checked, isNew] = entries_.insert(attr.opaque());
    if (!isNew)
      return *checked;
    *checked = checkUncached(attr);
    if (!checked->mistake.empty())
      report(op, ir::concat({"'", op.name().str(), "' ", checked->mistake}),
             checked->isError || !warns_);
    return *checked;
  }

  void checkGroups() {
    auto conflicts = analysis::findGroupConflicts(ctx_.operations(), ctx_.ids(), ctx_.calls());
    if (!conflicts)
      return ctx_.emitRemark(ctx_.module(),
                             "groups were not checked: with calls inlined, there are "
                             "more than 1000000 operations");
    // A function is checked once per call, with equal reports.
    std::set<std::pair<const void *, std::string>> seen;
    for (const auto &[op, message] : *conflicts)
      if (seen.emplace(op.opaque(), message).second)
        report(op, message, !warns_);
  }

  /// Reports how many mistakes were not.
  void reportRest() {
    auto rest = [&](bool isError) {
      return "and " + std::to_string(numReports_[isError] - kMaxReports) + " more";
    };
    if (numReports_[false] > kMaxReports)
      ctx_.emitWarning(ctx_.module(), rest(false) + " warnings about entries");
    if (numReports_[true] > kMaxReports)
      ctx_.emitError(ctx_.module(), rest(true) + " errors in entries");
  }

  /// Removes escapes and marks from names.
  void restoreNames() {
    if (!ctx_.module().hasAttr(analysis::kEscaped))
      return;
    ir::LocationMap<ir::Location> renamed;
    auto unescape = [&](ir::Location loc) {
      if (auto name = ir::dynCast<ir::NameLoc>(loc))
        return ir::Location(
            ir::NameLoc::get(analysis::unescape(name.name().str()), renamed.at(name.child())));
      std::vector<ir::Location> parts = ir::partsOf(loc);
      for (ir::Location &part : parts)
        part = renamed.at(part);
      return ir::replaceParts(loc, parts);
    };
    for (const ir::OpList::Item &item : ctx_.operations()) {
      ctx_.rewriter().setLocation(item.op, renamed.of(item.op.location(), unescape));
      ctx_.rewriter().changeArgumentLocations(
          item.op, [&](ir::Location at) { return renamed.of(at, unescape); });
    }
    ctx_.rewriter().removeAttr(ctx_.module(),
                               ir::Identifier::get(ctx_.context(), analysis::kEscaped));
  }

  /// Returns why an entry is illegal, or an empty string.
  std::string mistakeIn(ir::NamedAttribute entry) {
    std::string key(entry.name.str());
    auto text = ir::dynCast<ir::StringAttr>(entry.value);
    bool isBool = capi::fn().mlirAttributeIsABool(entry.value.raw());
    std::string mistake;
    if (!text && !isBool) {
      mistake = ", which XLA drops: it must be a string or a bool";
    } else {
      std::string illegal =
          ctx_.whyIllegal(key, text ? std::string(text.value()) : entry.value.str());
      if (illegal.empty())
        return {};
      mistake = ", which is not legal; " + illegal;
    }
    return ir::concat({"key '", key, "' in '", ctx_.ids().frontendAttributes.str(),
                       "' has the value ", entry.value.str(), mistake,
                       ". Correct it where it is written, or remove it by hlotag-strip{keys=", key,
                       "}"});
  }

  Checked checkUncached(ir::Attribute attr) {
    std::string_view name = ctx_.ids().frontendAttributes.str();
    ir::DictionaryAttr entries = ir::dynCast<ir::DictionaryAttr>(attr);
    if (!entries)
      return {ir::concat({"'", name, "' must be a dictionary, but is ", attr.str()}), true, {}};
    Checked checked;
    std::vector<ir::NamedAttribute> kept;
    for (ir::NamedAttribute entry : entries) {
      std::string key(entry.name.str());
      if (ir::startsWith(key, ir::kReservedPrefix))
        return {ir::concat({"key '", key, "' in '", name, "': the prefix 'hlotag.' is reserved"}),
                /*isError=*/true,
                {}};
      if (ir::isUnset(entry.value))
        continue;
      checked.isInGroup |= key == analysis::kSchedulingGroup || key == analysis::kCollectiveGroup;
      if (checked.mistake.empty())
        checked.mistake = mistakeIn(entry);
      kept.push_back(entry);
    }
    if (intptr_t(kept.size()) == entries.size())
      checked.final = entries;
    else if (!kept.empty())
      checked.final = ir::DictionaryAttr::get(ctx_.context(), kept);
    return checked;
  }

  PassContext &ctx_;
  bool warns_;
  size_t numReports_[2] = {}; // warnings and errors
  bool hasGroups_ = false;
  ir::PointerMap<Checked> entries_;
};

class Finalize final : public Pass {
public:
  Finalize()
      : Pass({"hlotag-finalize", "HlotagFinalize", "Check tags, and remove what is hlotag's own"}) {
  }

  void run(PassContext &ctx) override { Finalizer(ctx, *onMistake_ == "warning").run(); }

private:
  Option<std::string> onMistake_{options(),
                                 "on-mistake",
                                 "the severity of entries that XLA would drop or refuse",
                                 "error",
                                 {"error", "warning"}};
};

} // namespace

std::unique_ptr<pass::Pass> createFinalizePass() { return std::make_unique<Finalize>(); }

} // namespace hlotag::passes
