// SPDX-License-Identifier: Apache-2.0
//
// Which entries does each mark stand for? The attributes `hlotag.tags` and `hlotag.rules`.
#pragma once

#include "rules.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hlotag::analysis {

/// The phase of an operation, for its entries: `Custom` is of a backward rule of the user's.
enum TagPhase : uint8_t { Forward, Custom, Derived, Remat };
constexpr size_t kPhases = 4;

/// Entries by phase; null for none.
using Columns = std::array<ir::DictionaryAttr, kPhases>;

/// What a rule gives to the operations of a tag.
struct RuleEntries {
  size_t rule = 0;                 ///< index into `hlotag.rules`
  size_t depth = 0;                ///< how deep it matched; deeper ones come later
  std::optional<std::string> op;   ///< the pattern of operations
  std::vector<std::string> unless; ///< patterns of excluded operations
  Columns entries;

  /// Whether the rule is for operations of this name.
  bool matches(std::string_view name) const;
};

/// One element of `hlotag.tags`.
struct Tag {
  Columns own;
  std::vector<RuleEntries> rules;
  Columns all; ///< `own`, and the entries of rules for all operations

  /// Whether operations of the user's backward rules get other entries than forward ones.
  bool hasCustom() const;
  /// The tag of operations that were bound in a backward rule within this tag's: all are derived.
  Tag settled() const;
};

struct TagTable {
  std::vector<Tag> tags;
  std::vector<RuleName> rules;
};

/// Reads the table of a module with `hlotag.tags`. Throws FieldError.
TagTable readTagTable(MlirContext context, ir::Operation module, ir::TagWriter &tags);

} // namespace hlotag::analysis
