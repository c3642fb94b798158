// SPDX-License-Identifier: Apache-2.0
//
// Which operations does a rule select, and which entries does it give them?
#pragma once

#include "hlotag/analysis/pattern.h"
#include "hlotag/ir/ir.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hlotag::analysis {

enum class Phase { Forward, Backward, Both };

/// The properties of an operation that patterns match.
struct Subject {
  std::string_view opName; ///< `stablehlo.dot_general`
  ScopeMatches &scopes;    ///< of the module
  PathId scope;            ///< in `scopes`
  std::string_view file;   ///< of the innermost line of user code; may be empty
  int line = 0, column = 0;
  std::string_view function; ///< symbol of the enclosing function
  bool isTransposed = false;
  bool isRematted = false; ///< recomputed by jax.checkpoint
};

/// Patterns that an operation matches together. A missing one matches everything.
struct Patterns {
  std::optional<std::string> op, scope;
  std::optional<TextPattern> source, function;

  bool match(const Subject &subject) const;
};

/// A rule in messages.
struct RuleName {
  std::string name; ///< `rule 2`, `rule 2 (rules.toml:12)`
  std::string text; ///< without its place
};

/// One rule.
struct Rule {
  RuleName name;
  Patterns patterns;
  std::vector<Patterns> unless; ///< each excludes the operations that it matches
  Phase phase = Phase::Both;
  ir::DictionaryAttr attrs;
  ir::DictionaryAttr grad;  ///< the entries of derived operations; may be empty or equal to `attrs`
  ir::DictionaryAttr remat; ///< the entries of recomputed operations

  /// A quick test before `matches`: whether the rule may select operations called `opName`.
  bool mayMatch(std::string_view opName) const;
  bool matches(const Subject &subject) const;
  /// As `matches`, without the phase.
  bool matchesPatterns(const Subject &subject) const;
  /// Whether the operation's phase decides what it gets.
  bool dependsOnPhase() const { return phase != Phase::Both || grad != attrs || remat != grad; }
  /// Returns `entries`, the rule's own, with the names in braces replaced by the text that they
  /// match in `subject`, which the rule matches.
  ir::DictionaryAttr bind(MlirContext context, ir::DictionaryAttr entries,
                          const Subject &subject) const;
};

/// Reads an MLIR array attribute of dictionaries:
/// `[{op = "dot_general", scope = "layer*/attn", attrs = {k = "v"}}]`. Throws IRError.
std::vector<Rule> parseRules(MlirContext context, std::string_view text);

} // namespace hlotag::analysis
