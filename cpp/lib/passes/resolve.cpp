// SPDX-License-Identifier: Apache-2.0
#include "analysis/field.h"
#include "analysis/marks.h"
#include "analysis/rules.h"
#include "analysis/tag_table.h"
#include "hlotag/analysis/entries.h"
#include "hlotag/analysis/provenance.h"
#include "hlotag/pass/pass.h"
#include "hlotag/passes/passes.h"
#include "transforms/phase_split.h"
#include "transforms/rule_writer.h"

#include <algorithm>
#include <array>
#include <optional>

namespace hlotag::passes {

namespace {

using namespace pass;
using analysis::Columns;
using analysis::Custom;
using analysis::Derived;
using analysis::Forward;
using analysis::kPhases;
using analysis::Remat;
using analysis::RuleEntries;
using analysis::Tag;
using analysis::TagTable;

class Resolve final : public Pass {
public:
  Resolve()
      : Pass({"hlotag-resolve", "HlotagResolve",
              "Turn the marks in locations into frontend attributes"}) {}
  LogicalResult run(PassContext &ctx) override;
};

/// A location without its marks, and their entries. Computed once per distinct location.
struct Resolved {
  ir::Location stripped;    ///< the location itself if it has no mark
  Columns inner;            ///< of the marks up to that of `tag`
  const Tag *tag = nullptr; ///< of the innermost mark with rules, or null
  Columns outer;            ///< of the marks around that one

  bool dependsOnPhase() const {
    auto differs = [](const Columns &columns) {
      return std::any_of(columns.begin(), columns.end(),
                         [&](ir::DictionaryAttr other) { return other != columns[Forward]; });
    };
    return differs(inner) || differs(outer) ||
           (tag && std::any_of(tag->rules.begin(), tag->rules.end(),
                               [&](const RuleEntries &rule) { return differs(rule.entries); }));
  }
};

class LocationResolver {
public:
  LocationResolver(PassContext &ctx, std::vector<Tag> tags) : ctx_(ctx), tags_(std::move(tags)) {
    for (const Tag &tag : tags_)
      settled_.push_back(tag.settled());
  }

  /// Throws IRError for a mark that cannot be resolved.
  const Resolved &resolve(ir::Location root) {
    return resolved_.of(root, [&](ir::Location loc) { return compute(loc); });
  }

private:
  Resolved compute(ir::Location loc);
  Resolved resolveName(ir::NameLoc loc, const Resolved &child);
  const Tag &tagOf(ir::Location loc, size_t mark, bool isSettled);
  /// As a location with one mark.
  static Resolved resolved(const Tag &tag) {
    return {{}, tag.own, tag.rules.empty() ? nullptr : &tag, {}};
  }
  void merge(Columns &columns, const Columns &more) {
    for (size_t phase = 0; phase < kPhases; ++phase)
      columns[phase] = ctx_.tags().merge(columns[phase], more[phase]);
  }
  /// Adds the marks of `around`, which are around those of `result`.
  void enclose(Resolved &result, const Resolved &around) {
    if (!result.tag) {
      merge(result.inner, around.inner);
      result.tag = around.tag;
      result.outer = around.outer;
      return;
    }
    merge(result.outer, around.inner);
    if (around.tag)
      merge(result.outer, around.tag->all);
    merge(result.outer, around.outer);
  }

  PassContext &ctx_;
  std::vector<Tag> tags_, settled_;
  ir::LocationMap<Resolved> resolved_;
};

Resolved LocationResolver::compute(ir::Location loc) {
  if (auto name = ir::dynCast<ir::NameLoc>(loc))
    return resolveName(name, resolved_.at(name.child()));
  Resolved result{loc, {}, nullptr, {}};
  std::vector<ir::Location> parts = ir::partsOf(loc);
  bool isMarked = false;
  for (ir::Location &part : parts) {
    const Resolved &inner = resolved_.at(part);
    enclose(result, inner);
    isMarked |= inner.stripped != part;
    part = inner.stripped;
  }
  if (isMarked)
    result.stripped = ir::replaceParts(loc, parts);
  return result;
}

Resolved LocationResolver::resolveName(ir::NameLoc loc, const Resolved &child) {
  std::string_view name = loc.name().str();
  analysis::MarkedName parsed;
  if (!analysis::parseMarks(name, parsed)) {
    Resolved result = child;
    result.stripped = child.stripped == loc.child() ? loc : ir::NameLoc::get(name, child.stripped);
    return result;
  }
  if (!parsed.error.empty())
    throw ir::IRError(loc.raw(), parsed.error);
  Resolved result{child.stripped, {}, nullptr, {}};
  bool isSettled = false;
  for (auto mark = parsed.marks.rbegin(); mark != parsed.marks.rend(); ++mark) {
    if (*mark == analysis::kNoTag)
      isSettled = true;
    else
      enclose(result, resolved(tagOf(loc, *mark, isSettled)));
  }
  enclose(result, child);
  if (!parsed.stripped.empty())
    result.stripped = ir::NameLoc::get(parsed.stripped, child.stripped);
  return result;
}

const Tag &LocationResolver::tagOf(ir::Location loc, size_t mark, bool isSettled) {
  if (mark >= tags_.size())
    throw ir::IRError(loc.raw(), ir::concat({"mark 'hlotag#", std::to_string(mark),
                                             "' has no entry in '", ctx_.ids().tags.str(),
                                             "', which has ", std::to_string(tags_.size())}));
  return isSettled ? settled_[mark] : tags_[mark];
}

class Rewrite {
public:
  /// `provenance` may be null if no tag depends on the phase.
  Rewrite(PassContext &ctx, LocationResolver &locations, analysis::Provenance *provenance,
          std::vector<analysis::RuleName> rules)
      : ctx_(ctx), locations_(locations), provenance_(provenance),
        carrier_(ctx.rewriter(), ctx.tags(), ctx.ids()), enclosing_(ctx.ids()),
        rules_(ctx, std::move(rules)) {}

  void run() {
    // An operation's origin depends on the locations around it, which lose their marks first.
    for (const ir::OpList::Item &item : ctx_.operations())
      if (provenance_ && item.hasRegions)
        (void)provenance_->of(item.op, item.op);
    for (const ir::OpList::Item &item : ctx_.operations())
      visit(item);
    ctx_.rewriter().removeAttr(ctx_.module(), ctx_.ids().tags);
    ctx_.rewriter().removeAttr(ctx_.module(), ir::Identifier::get(ctx_.context(), "hlotag.rules"));
    rules_.reportUnmatched();
  }

private:
  void visit(const ir::OpList::Item &item) {
    ir::Location location = item.op.location();
    const Resolved &resolved = locations_.resolve(location);
    if (resolved.stripped != location) {
      if (carrier_.isTaggable(item))
        addEntries(item.op, item.name, resolved);
      ctx_.rewriter().setLocation(item.op, resolved.stripped);
    }
    if (!item.hasRegions)
      return;
    for (ir::Region region : item.op.regions())
      for (ir::Block block : region.blocks())
        for (ir::Value argument : block.arguments())
          ctx_.rewriter().setLocation(argument, locations_.resolve(argument.location()).stripped);
  }

  analysis::TagPhase phaseOf(ir::Operation op) {
    if (!provenance_)
      return Forward;
    const analysis::Origin &origin = provenance_->of(op);
    if (origin.derivations > 0)
      return origin.rematted ? Remat : Derived;
    return origin.transposed ? Custom : Forward;
  }

  void addEntries(ir::Operation op, ir::Identifier name, const Resolved &resolved) {
    analysis::TagPhase phase = phaseOf(op);
    std::string_view step =
        phase <= Custom ? "tag of the program" : "tag of the program, derived by autodiff";
    if (resolved.inner[phase])
      ctx_.tags().add(op, resolved.inner[phase], {step});
    if (resolved.tag)
      addOfRules(op, name, resolved.tag->rules, phase);
    if (resolved.outer[phase])
      ctx_.tags().add(op, resolved.outer[phase], {step});
  }

  void addOfRules(ir::Operation op, ir::Identifier name, const std::vector<RuleEntries> &rules,
                  analysis::TagPhase phase) {
    std::vector<transforms::RuleWriter::Match> matches; // the last rule first
    for (auto rule = rules.rbegin(); rule != rules.rend(); ++rule) {
      ir::DictionaryAttr entries = rule->entries[phase];
      bool isFor = !rule->op || (!enclosing_.isInBody(op) && rule->matches(name.str()));
      if (isFor && entries && !entries.empty())
        matches.push_back({rule->rule, rule->depth, entries});
    }
    rules_.add(op, matches);
  }

  PassContext &ctx_;
  LocationResolver &locations_;
  analysis::Provenance *provenance_;
  analysis::EntryCarrier carrier_;
  analysis::Enclosing enclosing_;
  transforms::RuleWriter rules_;
};

LogicalResult Resolve::run(PassContext &ctx) {
  if (!ctx.module().hasAttr(ctx.ids().tags.str()))
    return success();
  TagTable table;
  try {
    table = analysis::readTagTable(ctx.context(), ctx.module(), ctx.tags());
  } catch (const analysis::FieldError &error) {
    return ctx.emitError(ctx.module(), error.what());
  }
  bool dependOnPhase = std::any_of(table.tags.begin(), table.tags.end(), [](const Tag &tag) {
    return Resolved{{}, tag.all, &tag, {}}.dependsOnPhase();
  });
  bool ofCustom = std::any_of(table.tags.begin(), table.tags.end(),
                              [](const Tag &tag) { return tag.hasCustom(); });
  std::optional<analysis::Provenance> provenance;
  if (dependOnPhase || ctx.tags().recordsOrigins())
    provenance.emplace(ctx.operations());
  LocationResolver locations(ctx, std::move(table.tags));
  // Without functions that both phases call, this reads only the calls.
  if (provenance && transforms::splitByPhase(ctx, *provenance, ofCustom, [&](ir::Operation op) {
        return locations.resolve(op.location()).dependsOnPhase();
      }))
    provenance.emplace(ctx.operations());
  Rewrite(ctx, locations, provenance ? &*provenance : nullptr, std::move(table.rules)).run();
  return success();
}

} // namespace

std::unique_ptr<pass::Pass> createResolvePass() { return std::make_unique<Resolve>(); }

} // namespace hlotag::passes
