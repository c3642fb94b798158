// SPDX-License-Identifier: Apache-2.0
#include "rule_writer.h"

namespace hlotag::transforms {

RuleWriter::RuleWriter(pass::PassContext &ctx, std::vector<analysis::RuleName> rules)
    : ctx_(ctx), rules_(std::move(rules)), matched_(rules_.size()) {
  for (const analysis::RuleName &rule : rules_)
    steps_.push_back(rule.name + ": " + rule.text);
}

void RuleWriter::add(ir::Operation op, const std::vector<Match> &matches) {
  for (auto match = matches.begin(); match != matches.end(); ++match) {
    matched_[match->rule] = true;
    for (auto winner = matches.begin(); winner != match; ++winner)
      if (winner->depth == match->depth)
        reportConflict(op, *winner, *match);
    ctx_.tags().add(op, match->entries, {steps_[match->rule]});
  }
}

void RuleWriter::reportConflict(ir::Operation op, const Match &winner, const Match &loser) {
  for (ir::NamedAttribute entry : winner.entries) {
    ir::Attribute other = loser.entries.lookup(entry.name.str());
    if (!other || other == entry.value || winner.rule == loser.rule || ir::isUnset(entry.value) ||
        ir::isUnset(other))
      continue;
    std::string key(entry.name.str());
    if (reported_.insert({loser.rule, winner.rule, key}).second)
      ctx_.emitWarning(op, ir::concat({rules_[winner.rule].name, " sets '", key, "' to ",
                                       entry.value.str(), " where ", rules_[loser.rule].name,
                                       " sets it to ", other.str(), "; the later rule wins"}));
  }
}

void RuleWriter::reportUnmatched() {
  for (size_t rule = 0; rule < rules_.size(); ++rule)
    if (!matched_[rule])
      ctx_.emitRemark(ctx_.module(), rules_[rule].name + " matched nothing: " + rules_[rule].text);
}

} // namespace hlotag::transforms
