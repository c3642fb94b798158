// SPDX-License-Identifier: Apache-2.0
//
// Rules: which operations get which entries, as `hlotag-attach` takes them.
#pragma once

#include "hlotag/ir/ir.h"

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace hlotag::analysis {

enum class Phase { Forward, Backward, Both };

/// What the patterns of rules look at.
struct Subject {
  std::string_view opName; ///< `stablehlo.dot_general`
  std::string_view scope;  ///< `decoder/layer_3/attention`
  std::string_view file;   ///< of the innermost line of user code; may be empty
  int line = 0, column = 0;
  std::string_view function; ///< symbol of the function that holds the operation
  bool isTransposed = false;
};

/// One rule; a pattern that is not there matches anything.
struct Rule {
  size_t number;    ///< from 1
  std::string at;   ///< where it is written: `rules.toml:12`, or empty
  std::string text; ///< the rest of it
  std::optional<std::string> op, scope, source, function;
  Phase phase = Phase::Both;
  ir::DictionaryAttr attrs;
  ir::DictionaryAttr grad; ///< what derived operations get; may be empty, and the same as `attrs`

  /// What messages call it: `rule 2`, `rule 2 (rules.toml:12)`.
  std::string name() const;
  /// Whether it selects any operation of that name; a quick test that comes before `matches`.
  bool mayMatch(std::string_view opName) const;
  bool matches(const Subject &subject) const;
  /// The same but for the phase.
  bool matchesPatterns(const Subject &subject) const;
};

/// The text is no list of rules; what() names the rule and the field.
class RuleError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Reads an MLIR array attribute of dictionaries:
/// `[{op = "dot_general", scope = "layer*/attn", attrs = {k = "v"}}]`. Throws RuleError.
std::vector<Rule> parseRules(MlirContext context, std::string_view text);

} // namespace hlotag::analysis
