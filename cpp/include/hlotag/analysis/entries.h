// SPDX-License-Identifier: Apache-2.0
//
// Which entries passes hand on from one operation to others, and to which operations.
#pragma once

#include "hlotag/ir/ir.h"

#include <string_view>

namespace hlotag::analysis {

/// Whether passes may copy an entry of that key to operations that did not have it. Not those that
/// JAX, Shardy and XLA write for the one operation they stand on: `num_batch_dims` of a LAPACK
/// call, `inlineable` of a call, placements, shardings.
bool isCarriedKey(std::string_view key);

/// In-flight record of what operations that autodiff derives get instead of the attached entries;
/// like those, it never leaves the pipeline.
inline constexpr std::string_view kDerived = "hlotag.derived";

/// What is handed on: frontend attributes, which of them stem from rules, and what operations
/// derived by autodiff get instead of the latter (null: the same). Each may be null.
struct Entries {
  ir::DictionaryAttr all;
  ir::DictionaryAttr attached;
  ir::DictionaryAttr derived;

  explicit operator bool() const { return bool(all); }
  friend bool operator==(const Entries &a, const Entries &b) {
    return a.all == b.all && a.attached == b.attached && a.derived == b.derived;
  }
};

struct EntriesHash {
  size_t operator()(const Entries &entries) const {
    return (ir::HandleHash()(entries.all) * 31 + ir::HandleHash()(entries.attached)) * 31 +
           ir::HandleHash()(entries.derived);
  }
};

/// Hands entries from operation to operation. All set operations on dictionaries are memoized by
/// pointer, so nothing is compared or allocated per operation.
class EntryCarrier {
public:
  EntryCarrier(ir::Rewriter &rewriter, ir::TagWriter &tags, const ir::OpIds &ids)
      : rewriter_(rewriter), tags_(tags), ids_(ids), context_(rewriter.context()),
        derived_(ir::Identifier::get(context_, kDerived)) {}

  /// Whether `op` may carry entries: not modules, functions and terminators.
  bool isTaggable(ir::Operation op) { return isTaggable(op.name()); }
  bool isTaggable(ir::Identifier opName);

  /// What `op` hands on, now.
  Entries entriesOf(ir::Operation op);

  /// Adds to `op` those entries whose key it does not have. Returns whether it changed.
  bool give(ir::Operation op, const Entries &entries, const ir::Reason &reason = {});

  /// Records what operations derived from `op` get instead of its attached entries.
  bool setDerived(ir::Operation op, ir::DictionaryAttr entries) {
    return rewriter_.setAttr(op, derived_, entries);
  }

  /// What an operation with `own` hands on after it was given `entries`.
  Entries merge(const Entries &own, const Entries &entries);

  /// The carried part of `dictionary`; null if that is empty.
  ir::DictionaryAttr carried(ir::DictionaryAttr dictionary);
  /// The entries that `a` and `b` share, key and value; null if there are none.
  ir::DictionaryAttr common(ir::DictionaryAttr a, ir::DictionaryAttr b);
  /// The entries of `a` whose key is also in `b`; null if there are none.
  ir::DictionaryAttr sharedKeys(ir::DictionaryAttr a, ir::DictionaryAttr b);
  /// The entries of `a` whose key is not in `b`; null if there are none.
  ir::DictionaryAttr without(ir::DictionaryAttr a, ir::DictionaryAttr b);

private:
  enum Filter : unsigned char { Carried, Common, SharedKeys, Without, NumFilters };
  ir::DictionaryAttr filter(Filter kind, ir::DictionaryAttr a, ir::DictionaryAttr b);

  ir::Rewriter &rewriter_;
  ir::TagWriter &tags_;
  const ir::OpIds &ids_;
  MlirContext context_;
  ir::Identifier derived_;
  ir::PointerMap<bool> taggable_;
  ir::PointerPairMap<ir::DictionaryAttr> filtered_[NumFilters]; // by `a` and `b`
};

} // namespace hlotag::analysis
