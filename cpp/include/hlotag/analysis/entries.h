// SPDX-License-Identifier: Apache-2.0
//
// Which entries do passes copy from one operation to others, and which operations may get them?
#pragma once

#include "hlotag/ir/ir.h"

#include <string_view>
#include <tuple>

namespace hlotag::analysis {

/// In-flight record: the entries that derived operations get instead of the attached ones.
/// `hlotag-verify` removes it.
inline constexpr std::string_view kDerived = "hlotag.derived";

/// The entries that an operation passes on. Each dictionary may be null.
struct Carried {
  ir::DictionaryAttr all;
  ir::DictionaryAttr attached; ///< those of `all` that rules attached
  ir::DictionaryAttr derived;  ///< for derived operations, instead of `attached`; null: the same

  explicit operator bool() const { return bool(all); }
  friend bool operator==(const Carried &a, const Carried &b) {
    return a.all == b.all && a.attached == b.attached && a.derived == b.derived;
  }
  friend bool operator<(const Carried &a, const Carried &b) {
    return std::tie(a.all, a.attached, a.derived) < std::tie(b.all, b.attached, b.derived);
  }
};

/// Copies entries from operation to operation.
class EntryCarrier {
public:
  EntryCarrier(ir::Rewriter &rewriter, ir::TagWriter &tags, const ir::OpIds &ids)
      : rewriter_(rewriter), tags_(tags), ids_(ids), context_(rewriter.context()),
        derived_(ir::Identifier::get(context_, kDerived)) {}

  /// Whether `op` may have entries. False for modules, functions and terminators.
  bool isTaggable(ir::Operation op) { return isTaggable(op, op.name()); }
  bool isTaggable(ir::Operation op, ir::Identifier name);
  bool isTaggable(const ir::OpList::Item &item) { return isTaggable(item.op, item.name); }

  /// Returns the entries that `op` passes on now.
  Carried entriesOf(ir::Operation op);

  /// Adds to `op` the entries whose key it does not have. Returns whether `op` changed.
  bool give(ir::Operation op, const Carried &entries, const ir::Reason &reason = {});

  /// Records the entries that operations derived from `op` get instead of its attached ones.
  bool setDerived(ir::Operation op, ir::DictionaryAttr entries) {
    return rewriter_.setAttr(op, derived_, entries);
  }

  /// Returns what an operation with `own` entries passes on after `give(op, entries)`.
  Carried merge(const Carried &own, const Carried &entries);

  /// Returns the carried entries of `dictionary`; null if there are none.
  ir::DictionaryAttr selectCarried(ir::DictionaryAttr dictionary);
  /// Returns the entries in both `a` and `b`, equal in key and value; null if there are none.
  ir::DictionaryAttr intersect(ir::DictionaryAttr a, ir::DictionaryAttr b);
  /// Returns the entries of `a` whose key is in `b`; null if there are none.
  ir::DictionaryAttr selectSharedKeys(ir::DictionaryAttr a, ir::DictionaryAttr b);
  /// Returns the entries of `a` whose key is not in `b`; null if there are none.
  ir::DictionaryAttr remove(ir::DictionaryAttr a, ir::DictionaryAttr b);

private:
  /// Returns `derived` of an operation with `own` entries after it got `entries`; null if both have
  /// none.
  ir::DictionaryAttr mergeDerived(const Carried &own, const Carried &entries);

  enum class Filter { Carried, Common, SharedKeys, Without };
  ir::DictionaryAttr filter(Filter kind, ir::DictionaryAttr a, ir::DictionaryAttr b);

  ir::Rewriter &rewriter_;
  ir::TagWriter &tags_;
  const ir::OpIds &ids_;
  MlirContext context_;
  ir::Identifier derived_;
  ir::PointerMap<bool> taggable_;
};

} // namespace hlotag::analysis
