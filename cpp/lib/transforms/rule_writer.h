// SPDX-License-Identifier: Apache-2.0
//
// How do operations get the entries of rules, and which rules disagree or match nothing?
#pragma once

#include "analysis/rules.h"
#include "hlotag/pass/pass.h"

#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace hlotag::transforms {

class RuleWriter {
public:
  RuleWriter(pass::PassContext &ctx, std::vector<analysis::RuleName> rules);

  /// What a rule gives to an operation.
  struct Match {
    size_t rule;  ///< index of its name
    size_t depth; ///< how deep it matched: only equally deep rules can disagree
    ir::DictionaryAttr entries;
  };
  /// Adds the entries of `matches`, the winning rule first. Warns once for each key and pair of
  /// rules that disagree.
  void add(ir::Operation op, const std::vector<Match> &matches);

  /// Remarks which rules never matched.
  void reportUnmatched();

private:
  void reportConflict(ir::Operation op, const Match &winner, const Match &loser);

  pass::PassContext &ctx_;
  std::vector<analysis::RuleName> rules_;
  std::vector<std::string> steps_; // by rule: its text in hlotag.origins
  std::vector<bool> matched_;
  std::set<std::tuple<size_t, size_t, std::string>> reported_;
};

} // namespace hlotag::transforms
