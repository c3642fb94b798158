// SPDX-License-Identifier: Apache-2.0
//
// How do operations get entries, and how is the origin of each entry recorded?
#pragma once

#include "hlotag/ir/keys.h"
#include "hlotag/ir/op_list.h"
#include "hlotag/ir/rewriter.h"

#include <string_view>

namespace hlotag::ir {

/// Why a pass adds entries to an operation.
struct Reason {
  std::string_view step = {}; ///< what the pass did, in a few words
  Operation from = {};        ///< the operation with the original entries, or null
  bool isInferred = false;    ///< whether the pass inferred the connection
};

/// Adds entries to dictionary attributes of operations.
class TagWriter {
public:
  explicit TagWriter(Rewriter &rewriter);

  /// Returns the attribute `name` of `op`, or null. Throws IRError if it is not a dictionary.
  static DictionaryAttr dictionary(Operation op, std::string_view name);
  /// Returns the frontend attributes of `op`, or null.
  static DictionaryAttr get(Operation op) { return dictionary(op, kFrontendAttributes); }

  /// Adds those of `entries` whose key `op` does not have. Returns whether `op` changed.
  bool add(Operation op, DictionaryAttr entries, const Reason &reason = {});

  /// Replaces the frontend attributes by `entries`; null or empty removes them.
  bool set(Operation op, DictionaryAttr entries);

  /// Records `pass` as the origin of entries from now on; nothing if `pass` is empty.
  void recordOrigins(std::string_view pass) { recordedPass_ = pass; }
  bool recordsOrigins() const { return !recordedPass_.empty(); }

  /// Returns the entries that `op` passes on to other operations; null if there are none.
  DictionaryAttr carried(Operation op) {
    return select(get(op), [](NamedAttribute entry) {
      return isCarriedKey(entry.name.str()) && !isUnset(entry.value);
    });
  }

  // Of dictionaries, which may be null. The result is null if it has no entry.

  /// Returns both merged; of two values of a key, that of `existing`.
  DictionaryAttr merge(DictionaryAttr existing, DictionaryAttr entries);
  /// Returns the entries of `a` whose key is not in `b`.
  DictionaryAttr remove(DictionaryAttr a, DictionaryAttr b) {
    return select(a, [&](NamedAttribute entry) { return !b || !b.lookup(entry.name.str()); });
  }
  /// Returns the entries of `a` that are not unset.
  DictionaryAttr withoutUnset(DictionaryAttr a) {
    return select(a, [](NamedAttribute entry) { return !isUnset(entry.value); });
  }
  /// Returns the entries of `a` without those that mean operations of one computation.
  DictionaryAttr withoutXlaKeys(DictionaryAttr a) {
    return select(a, [](NamedAttribute entry) { return !isXlaKey(entry.name.str()); });
  }
  /// Returns the entries of `a` that are `kept`.
  template <class Predicate> DictionaryAttr select(DictionaryAttr a, Predicate isKept) {
    std::vector<NamedAttribute> kept;
    for (intptr_t i = 0; a && i < a.size(); ++i)
      if (isKept(a[i]))
        kept.push_back(a[i]);
    if (kept.empty())
      return {};
    return kept.size() == size_t(a.size()) ? a : DictionaryAttr::get(rewriter_.context(), kept);
  }

  Identifier origins() const { return origins_; }

private:
  void updateOrigins(Operation op, DictionaryAttr before, DictionaryAttr after,
                     const Reason &reason);
  DictionaryAttr record(const Reason &reason);

  Rewriter &rewriter_;
  Identifier frontendAttributes_;
  Identifier origins_;
  std::string_view recordedPass_;
};

} // namespace hlotag::ir
