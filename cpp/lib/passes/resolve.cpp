// SPDX-License-Identifier: Apache-2.0
#include "analysis/applied.h"
#include "analysis/field.h"
#include "analysis/marks.h"
#include "analysis/rules.h"
#include "hlotag/pass/pass.h"
#include "hlotag/passes/passes.h"
#include "transforms/rule_writer.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

namespace hlotag::passes {

namespace {

using namespace pass;

/// What a rule gives to the operations of a tag.
struct RuleEntries {
  size_t rule = 0;                 ///< index into `hlotag.rules`
  size_t depth = 0;                ///< how deep it matched; deeper ones come later
  std::optional<std::string> op;   ///< the pattern of operations
  std::vector<std::string> unless; ///< patterns of excluded operations
  ir::DictionaryAttr entries;

  /// Whether the rule is for operations of this name.
  bool matches(std::string_view name) const {
    auto excludes = [&](const std::string &pattern) { return analysis::matchesOp(pattern, name); };
    return !op ||
           (analysis::matchesOp(*op, name) && std::none_of(unless.begin(), unless.end(), excludes));
  }
};

/// One element of `hlotag.tags`.
struct Tag {
  ir::DictionaryAttr own;
  std::vector<RuleEntries> rules;
  ir::DictionaryAttr all; ///< `own`, and the entries of rules for all operations
};

struct TagTable {
  std::vector<Tag> tags;
  std::vector<analysis::RuleName> rules;
};

size_t readIndex(const analysis::Field &field, size_t end, std::string_view expected) {
  std::string digits = field.text();
  size_t index = end;
  const char *last = digits.data() + digits.size();
  auto [rest, status] = std::from_chars(digits.data(), last, index);
  if (status != std::errc() || rest != last || index >= end)
    field.failUnless(expected);
  return index;
}

RuleEntries readRule(const analysis::Field &fields, size_t numRules) {
  RuleEntries rule;
  rule.rule = readIndex(fields["rule"], numRules, "an index into 'hlotag.rules'");
  if (analysis::Field depth = fields["depth"])
    rule.depth = readIndex(depth, SIZE_MAX, "a number");
  if (analysis::Field op = fields["op"])
    rule.op = op.text();
  if (analysis::Field unless = fields["unless"])
    for (const analysis::Field &pattern : unless.elements())
      rule.unless.push_back(pattern.text());
  rule.entries = fields["entries"].entries();
  return rule;
}

Tag readTag(ir::TagWriter &tags, const analysis::Field &fields, size_t numRules) {
  Tag tag;
  tag.own = tags.merge({}, fields["entries"].entries());
  if (analysis::Field rules = fields["rules"])
    for (const analysis::Field &rule : rules.elements())
      tag.rules.push_back(readRule(rule, numRules));
  tag.all = tag.own;
  for (auto rule = tag.rules.rbegin(); rule != tag.rules.rend(); ++rule)
    if (!rule->op)
      tag.all = tags.merge(tag.all, rule->entries);
  return tag;
}

/// Reads `hlotag.tags` and `hlotag.rules`. Throws IRError.
TagTable readTagTable(ir::Operation module, ir::TagWriter &tags) {
  TagTable table;
  if (analysis::Field rules{module.attr("hlotag.rules"), "hlotag.rules"})
    for (const analysis::Field &rule : rules.elements())
      table.rules.push_back({rule["name"].text(), rule["text"].text()});
  for (const analysis::Field &tag :
       analysis::Field(module.attr("hlotag.tags"), "hlotag.tags").elements())
    table.tags.push_back(readTag(tags, tag, table.rules.size()));
  return table;
}

/// A location without its marks, and their tags. Computed once per distinct location.
struct Resolved {
  ir::Location stripped;               ///< the location itself if it has no mark
  std::vector<const Tag *> tags;       ///< innermost first
  std::vector<const Tag *> named = {}; ///< those of its own name, which may repeat

  /// Adds a tag around the others. One that is there already changes nothing.
  void add(const Tag *tag) {
    if (std::find(tags.begin(), tags.end(), tag) == tags.end())
      tags.push_back(tag);
  }
};

class LocationResolver {
public:
  LocationResolver(PassContext &ctx, std::vector<Tag> tags) : ctx_(ctx), tags_(std::move(tags)) {}

  /// Throws IRError for a mark that cannot be resolved.
  const Resolved &resolve(ir::Location root) {
    return resolved_.of(root, [&](ir::Location loc) { return compute(loc); });
  }

private:
  Resolved compute(ir::Location loc) {
    if (auto name = ir::dynCast<ir::NameLoc>(loc))
      return resolveName(name, resolved_.at(name.child()));
    Resolved result{loc, {}};
    std::vector<ir::Location> parts = ir::partsOf(loc);
    bool isMarked = false;
    for (ir::Location &part : parts) {
      const Resolved &inner = resolved_.at(part);
      for (const Tag *tag : inner.tags)
        result.add(tag);
      isMarked |= inner.stripped != part;
      part = inner.stripped;
    }
    if (isMarked)
      result.stripped = ir::replaceParts(loc, parts);
    return result;
  }

  Resolved resolveName(ir::NameLoc loc, const Resolved &child) {
    std::string_view name = loc.name().str();
    analysis::MarkedName parsed;
    if (!analysis::parseMarks(name, parsed)) {
      Resolved result = child;
      result.stripped =
          child.stripped == loc.child() ? loc : ir::NameLoc::get(name, child.stripped);
      return result;
    }
    if (!parsed.error.empty())
      throw ir::IRError(parsed.error, loc.raw());
    Resolved result{child.stripped, {}};
    for (auto mark = parsed.marks.rbegin(); mark != parsed.marks.rend(); ++mark)
      result.named.push_back(&tagOf(loc, *mark));
    for (const Tag *tag : result.named)
      result.add(tag);
    for (const Tag *tag : child.tags)
      result.add(tag);
    if (!parsed.stripped.empty())
      result.stripped = ir::NameLoc::get(parsed.stripped, child.stripped);
    return result;
  }

  const Tag &tagOf(ir::Location loc, size_t mark) {
    if (mark >= tags_.size())
      throw ir::IRError(
          ir::concat({"mark 'hlotag#", std::to_string(mark), "' has no entry in '",
                      ctx_.ids().tags.str(), "', which has ", std::to_string(tags_.size())}),
          loc.raw());
    return tags_[mark];
  }

  PassContext &ctx_;
  std::vector<Tag> tags_;
  ir::LocationMap<Resolved> resolved_;
};

class Rewrite {
public:
  Rewrite(PassContext &ctx, LocationResolver &locations, std::vector<analysis::RuleName> rules)
      : ctx_(ctx), locations_(locations), rules_(ctx, std::move(rules)) {}

  void run() {
    const ir::OpList &operations = ctx_.operations();
    std::vector<bool> isApplied = analysis::findApplied(operations, ctx_.ids(), ctx_.calls());
    std::vector<Computation> around(1);
    for (size_t i = 0; i < operations.size(); ++i) {
      while (around.back().end <= i)
        around.pop_back();
      here_ = around.back();
      here_.isApplied = isApplied[i];
      if (ctx_.ids().hasComputations(operations[i]))
        around.push_back({operations.after(i), namedAt(operations[i].op).size()});
      visit(operations[i]);
    }
    ctx_.rewriter().removeAttr(ctx_.module(), ctx_.ids().tags);
    ctx_.rewriter().removeAttr(ctx_.module(), ir::Identifier::get(ctx_.context(), "hlotag.rules"));
    rules_.reportUnmatched();
  }

private:
  /// Where an operation is: XLA makes a computation of each region of a loop, branch or reduction.
  struct Computation {
    size_t end = SIZE_MAX;  ///< index after its last operation
    size_t numMarks = 0;    ///< in the name of the operation around it: the outermost in its names
    bool isApplied = false; ///< by a reduction, a sort or a scatter
  };

  const std::vector<const Tag *> &namedAt(ir::Operation op) {
    return locations_.resolve(op.location()).named;
  }

  void visit(const ir::OpList::Item &item) {
    ir::Location location = item.op.location();
    const Resolved &resolved = locations_.resolve(location);
    if (resolved.stripped != location) {
      if (ctx_.ids().isTaggable(item.op, item.name))
        addEntries(item.op, item.name, resolved);
      ctx_.rewriter().setLocation(item.op, resolved.stripped);
    }
    if (item.hasRegions)
      ctx_.rewriter().changeArgumentLocations(
          item.op, [&](ir::Location at) { return locations_.resolve(at).stripped; });
  }

  void addEntries(ir::Operation op, ir::Identifier name, const Resolved &resolved) {
    bool hasRules = false; // of a tag; those of outer ones for some operations do not count
    for (const Tag *tag : resolved.tags) {
      hasXlaKeys_ = isOfComputation(*tag, resolved.named);
      if (ir::DictionaryAttr entries = allowed(hasRules ? tag->all : tag->own))
        ctx_.tags().add(op, entries, {"tag of the program"});
      if (!hasRules && !tag->rules.empty())
        addOfRules(op, name, tag->rules);
      hasRules |= !tag->rules.empty();
    }
  }

  /// Returns whether a tag is of the operations of this computation, and not only of the loop or
  /// branch around it.
  bool isOfComputation(const Tag &tag, const std::vector<const Tag *> &named) const {
    if (here_.isApplied)
      return false;
    size_t numInner = named.size() - std::min(named.size(), here_.numMarks);
    return !here_.numMarks || std::find(named.begin(), named.begin() + ptrdiff_t(numInner), &tag) !=
                                  named.begin() + ptrdiff_t(numInner);
  }

  /// Returns the entries that the operation may have; null for none.
  ir::DictionaryAttr allowed(ir::DictionaryAttr entries) {
    return hasXlaKeys_ ? entries : ctx_.tags().withoutXlaKeys(entries);
  }

  void addOfRules(ir::Operation op, ir::Identifier name, const std::vector<RuleEntries> &rules) {
    std::vector<transforms::RuleWriter::Match> matches; // the last rule first
    for (auto rule = rules.rbegin(); rule != rules.rend(); ++rule) {
      ir::DictionaryAttr entries = allowed(rule->entries);
      bool isFor = !rule->op || (!here_.isApplied && rule->matches(name.str()));
      if (isFor && entries && !entries.empty())
        matches.push_back({rule->rule, rule->depth, entries});
    }
    rules_.add(op, matches);
  }

  PassContext &ctx_;
  LocationResolver &locations_;
  Computation here_;       // of the operation that is visited
  bool hasXlaKeys_ = true; // whether it may have those of the tag that is read
  transforms::RuleWriter rules_;
};

class Resolve final : public Pass {
public:
  Resolve()
      : Pass({"hlotag-resolve", "HlotagResolve",
              "Turn the marks in locations into frontend attributes"}) {}

  void run(PassContext &ctx) override {
    if (!ctx.module().hasAttr(ctx.ids().tags.str()))
      return;
    TagTable table = readTagTable(ctx.module(), ctx.tags());
    LocationResolver locations(ctx, std::move(table.tags));
    Rewrite(ctx, locations, std::move(table.rules)).run();
  }
};

} // namespace

std::unique_ptr<pass::Pass> createResolvePass() { return std::make_unique<Resolve>(); }

} // namespace hlotag::passes
