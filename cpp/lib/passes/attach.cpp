// SPDX-License-Identifier: Apache-2.0
#include "analysis/field.h"
#include "analysis/rules.h"
#include "hlotag/analysis/name_path.h"
#include "hlotag/analysis/provenance.h"
#include "hlotag/pass/pass.h"
#include "hlotag/passes/passes.h"
#include "transforms/rule_writer.h"
#include "transforms/specialize.h"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>

namespace hlotag::passes {

namespace {

using namespace pass;
using analysis::Phase;
using analysis::Rule;
using analysis::Subject;

/// The rules that match an operation. Equal for operations with equal keys.
struct RuleMatch {
  std::vector<transforms::RuleWriter::Match> rules; ///< the winning rule first
  /// For operations derived from a forward operation; null if they get what it gets.
  ir::DictionaryAttr derived;
};

std::vector<analysis::RuleName> namesOf(const std::vector<Rule> &rules) {
  std::vector<analysis::RuleName> names;
  names.reserve(rules.size());
  for (const Rule &rule : rules)
    names.push_back(rule.name);
  return names;
}

/// Copies functions for the backward pass: those that both phases call, and that contain or reach
/// an operation with `dependsOnPhase`. Returns whether there are any copies; `provenance` is then
/// out of date.
bool splitByPhase(
    pass::PassContext &ctx, analysis::Provenance &provenance,
    const std::function<bool(ir::Operation op, ir::Operation function)> &dependsOnPhase) {
  using analysis::CallGraph;
  const CallGraph &graph = provenance.calls();
  if (!graph.hasCalls())
    return false;
  std::vector<bool> isTransposed; // by call site
  for (const CallGraph::CallSite &site : graph.callSites())
    isTransposed.push_back(provenance.of(site.op).transposed);
  transforms::Specializer<bool> specializer(ctx, graph);
  specializer.reach(false, [&](size_t site, bool outer) { return outer || isTransposed[site]; });
  std::vector<bool> isDependent(graph.functions().size()); // callees included
  auto isCalleeDependent = [&](size_t site) {
    size_t callee = graph.callSites()[site].callee;
    return callee != CallGraph::kNoFunction && isDependent[callee];
  };
  for (size_t f : graph.calleesFirst()) {
    if (!specializer.isShared(f))
      continue;
    const CallGraph::Function &function = graph.functions()[f];
    const ir::OpList::Item *op = ctx.operations().begin() + function.index;
    isDependent[f] = std::any_of(function.calls.begin(), function.calls.end(), isCalleeDependent) ||
                     std::any_of(op, op + 1 + op->numNested, [&](const ir::OpList::Item &item) {
                       return dependsOnPhase(item.op, function.op);
                     });
  }
  return specializer.write([&](size_t f) { return isDependent[f]; });
}

class Attacher {
public:
  Attacher(PassContext &ctx, std::vector<Rule> rules)
      : ctx_(ctx), rules_(std::move(rules)), writer_(ctx, namesOf(rules_)) {
    analysis::Provenance &provenance = findOrigins();
    auto dependsOnPhase = [&](ir::Operation op, ir::Operation function) {
      return this->dependsOnPhase(op, function);
    };
    if (splitByPhase(ctx, provenance, dependsOnPhase))
      findOrigins();
  }

  void run() {
    const ir::OpList &operations = ctx_.operations();
    for (size_t i = 1; i < operations.size(); i = operations.after(i))
      runOn(operations, i);
    writer_.reportUnmatched();
  }

private:
  using Key = std::tuple<const void *, const void *, const void *>; // name, origin, function

  void runOn(const ir::OpList &operations, size_t top) {
    ir::Operation function = operations[top].op;
    for (size_t i = top + 1, next; i < operations.after(top); i = next) {
      next = ctx_.ids().hasBody(operations[i]) ? operations.after(i) : i + 1;
      ir::Operation op = operations[i].op;
      ir::Identifier name = operations[i].name;
      // Most rules name an operation; compute the origin of possible matches only.
      if (!mayMatch(op, name))
        continue;
      const analysis::Origin &origin = provenance_->of(op);
      auto [slot, isNew] = matches_.try_emplace({name.opaque(), &origin, function.opaque()});
      if (isNew)
        slot->second = matchRules(subjectOf(op, origin, function));
      if (!slot->second.rules.empty())
        attach(op, slot->second);
    }
  }

  analysis::Provenance &findOrigins() {
    provenance_ = std::make_unique<analysis::Provenance>(ctx_.ids(), ctx_.calls());
    scopes_ = std::make_unique<analysis::ScopeMatches>(provenance_->paths());
    return *provenance_;
  }

  bool mayMatch(ir::Operation op, ir::Identifier name) {
    auto [known, isNew] = mayMatch_.insert(name.opaque());
    if (isNew)
      *known = ctx_.ids().isTaggable(op, name) &&
               std::any_of(rules_.begin(), rules_.end(),
                           [&](const Rule &rule) { return rule.mayMatch(name.str()); });
    return *known;
  }

  Subject subjectOf(ir::Operation op, const analysis::Origin &origin, ir::Operation function) {
    Subject subject{op.name().str(), *scopes_, origin.scope};
    if (auto symbol = function.attrOf<ir::StringAttr>(ctx_.ids().symName.str()))
      subject.function = symbol.value();
    subject.isTransposed = origin.transposed;
    subject.isRematted = origin.rematted;
    if (origin.source) {
      subject.file = origin.source.filename().str();
      subject.line = origin.source.line();
      subject.column = origin.source.column();
    }
    return subject;
  }

  /// Whether `op` gets other entries in the backward pass.
  bool dependsOnPhase(ir::Operation op, ir::Operation function) {
    if (!mayMatch(op, op.name()))
      return false;
    Subject subject = subjectOf(op, provenance_->of(op), function);
    return std::any_of(rules_.begin(), rules_.end(), [&](const Rule &rule) {
      return rule.dependsOnPhase() && rule.matchesPatterns(subject);
    });
  }

  /// Backward operations get `grad`, except from rules for the backward pass; recomputed ones
  /// `remat`.
  ir::DictionaryAttr entriesFor(const Rule &rule, const Subject &subject) const {
    bool isDerived = subject.isTransposed && rule.phase != Phase::Backward;
    return rule.bind(ctx_.context(),
                     !isDerived           ? rule.attrs
                     : subject.isRematted ? rule.remat
                                          : rule.grad,
                     subject);
  }

  RuleMatch matchRules(const Subject &subject) {
    RuleMatch match;
    ir::DictionaryAttr forward;
    for (size_t index = 0; index < rules_.size(); ++index) {
      const Rule &rule = rules_[index];
      if (!rule.matches(subject))
        continue;
      ir::DictionaryAttr own = entriesFor(rule, subject);
      match.rules.insert(match.rules.begin(), {index, 0, own});
      forward = ctx_.tags().merge(own, forward);
      ir::DictionaryAttr derived = rule.bind(ctx_.context(), rule.grad, subject);
      derived = ctx_.tags().merge(derived, ir::unset(ctx_.context(), own));
      match.derived = ctx_.tags().merge(derived, match.derived);
    }
    if (subject.isTransposed || match.derived == forward)
      match.derived = {};
    return match;
  }

  void attach(ir::Operation op, const RuleMatch &match) {
    ir::DictionaryAttr before = ctx_.tags().get(op);
    writer_.add(op, match.rules);
    // Derived operations get nothing for keys that the operation had before.
    if (ir::DictionaryAttr derived = ctx_.tags().remove(match.derived, before))
      ctx_.rewriter().setAttr(op, ctx_.ids().derived, derived);
  }

  PassContext &ctx_;
  std::vector<Rule> rules_;
  transforms::RuleWriter writer_;
  // Found anew where a function is split by phase.
  std::unique_ptr<analysis::Provenance> provenance_;
  std::unique_ptr<analysis::ScopeMatches> scopes_; // of `provenance_`
  ir::PointerMap<bool> mayMatch_;
  std::map<Key, RuleMatch> matches_;
};

class Attach final : public Pass {
public:
  Attach() : Pass({"hlotag-attach", "HlotagAttach", "Tag the operations that rules select"}) {}

  void run(PassContext &ctx) override {
    // Python reads TOML and puts the rules of the file into `rules`.
    if (!rulesFile_->empty())
      return ctx.emitError(ctx.module(),
                           ir::concat({"the option 'rules-file' (", *rulesFile_,
                                       ") is for hlotag-opt and Python; here, give 'rules'"}));
    std::vector<Rule> rules = analysis::parseRules(ctx.context(), *rules_);
    if (rules.empty())
      return;
    if (ctx.module().hasAttr(ctx.ids().tags.str()))
      return ctx.emitError(ctx.module(),
                           "rules cannot read names that still have marks: the module "
                           "has 'hlotag.tags'; run hlotag-resolve first");
    Attacher(ctx, std::move(rules)).run();
  }

private:
  Option<std::string> rules_{options(), "rules",
                             "an array attribute of rules: [{op = \"dot_general\", attrs = {k = "
                             "\"v\"}}, ...]"};
  Option<std::string> rulesFile_{
      options(), "rules-file",
      "a TOML file of rules; the rules of `rules` come after them and win"};
};

} // namespace

std::unique_ptr<pass::Pass> createAttachPass() { return std::make_unique<Attach>(); }

} // namespace hlotag::passes
