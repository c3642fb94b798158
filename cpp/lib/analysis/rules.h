// SPDX-License-Identifier: Apache-2.0
//
// Which operations does a rule select, and which entries does it give them?
#pragma once

#include "hlotag/ir/ir.h"

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace hlotag::analysis {

enum class Phase { Forward, Backward, Both };

/// The properties of an operation that patterns match.
struct Subject {
  std::string_view opName; ///< `stablehlo.dot_general`
  std::string_view scope;  ///< `decoder/layer_3/attention`
  std::string_view file;   ///< of the innermost line of user code; may be empty
  int line = 0, column = 0;
  std::string_view function; ///< symbol of the enclosing function
  bool isTransposed = false;
};

/// One rule. A missing pattern matches everything.
struct Rule {
  size_t number;    ///< from 1
  std::string at;   ///< position in a file, `rules.toml:12`, or empty
  std::string text; ///< the rule without `at`
  std::optional<std::string> op, scope, source, function;
  Phase phase = Phase::Both;
  ir::DictionaryAttr attrs;
  ir::DictionaryAttr grad; ///< the entries of derived operations; may be empty or equal to `attrs`

  /// The name in messages: `rule 2`, `rule 2 (rules.toml:12)`.
  std::string name() const;
  /// A quick test before `matches`: whether the rule may select operations called `opName`.
  bool mayMatch(std::string_view opName) const;
  bool matches(const Subject &subject) const;
  /// As `matches`, without the phase.
  bool matchesPatterns(const Subject &subject) const;
};

/// The text is not a list of rules; what() names the rule and the field.
class RuleError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Reads an MLIR array attribute of dictionaries:
/// `[{op = "dot_general", scope = "layer*/attn", attrs = {k = "v"}}]`. Throws RuleError.
std::vector<Rule> parseRules(MlirContext context, std::string_view text);

} // namespace hlotag::analysis
