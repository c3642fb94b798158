// SPDX-License-Identifier: Apache-2.0
//
// Which entries do passes copy from one operation to others, and which operations may get them?
#pragma once

#include "hlotag/ir/ir.h"

namespace hlotag::analysis {

/// Copies entries from operation to operation. A dictionary of entries may be null.
class EntryCarrier {
public:
  EntryCarrier(ir::Rewriter &rewriter, ir::TagWriter &tags, const ir::OpIds &ids)
      : tags_(tags), ids_(ids), context_(rewriter.context()) {}

  /// Whether `op` may have entries. False for modules, functions and terminators.
  bool isTaggable(ir::Operation op) { return isTaggable(op, op.name()); }
  bool isTaggable(ir::Operation op, ir::Identifier name);
  bool isTaggable(const ir::OpList::Item &item) { return isTaggable(item.op, item.name); }

  /// Returns the entries that `op` passes on; null if there are none.
  ir::DictionaryAttr entriesOf(ir::Operation op) { return selectCarried(tags_.get(op)); }

  /// Returns the carried entries of `dictionary`; null if there are none.
  ir::DictionaryAttr selectCarried(ir::DictionaryAttr dictionary);
  /// Returns the entries of `a` whose key is in `b`; null if there are none.
  ir::DictionaryAttr selectSharedKeys(ir::DictionaryAttr a, ir::DictionaryAttr b);
  /// Returns the entries of `a` whose key is not in `b`; null if there are none.
  ir::DictionaryAttr remove(ir::DictionaryAttr a, ir::DictionaryAttr b);

private:
  template <class Predicate> ir::DictionaryAttr filter(ir::DictionaryAttr a, Predicate isKept);

  ir::TagWriter &tags_;
  const ir::OpIds &ids_;
  MlirContext context_;
  ir::PointerMap<bool> taggable_;
};

} // namespace hlotag::analysis
