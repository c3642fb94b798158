// SPDX-License-Identifier: Apache-2.0
//
// Reading and extending the frontend attributes of operations.
#pragma once

#include "hlotag/ir/flat_map.h"
#include "hlotag/ir/op_list.h"
#include "hlotag/ir/rewriter.h"

#include <optional>
#include <string_view>

namespace hlotag::ir {

inline constexpr std::string_view kFrontendAttributes = "mhlo.frontend_attributes";
/// In-flight record of the entries that rules put on an operation; never leaves the pipeline.
inline constexpr std::string_view kAttached = "hlotag.attached";
/// Record of where entries come from, by key; written only where that was asked for, and stays.
inline constexpr std::string_view kOrigins = "hlotag.origins";
/// Prefix of everything in flight: attribute names and frontend-attribute keys.
inline constexpr std::string_view kReservedPrefix = "hlotag.";

/// Whether `key` belongs to hlotag's in-flight data, or to a partitioner or exporter for which it
/// is part of what the program means: not for rules to set or to touch.
bool isReservedKey(std::string_view key);

/// Whether a value stands for "this key is not to be here", which wins over what callers, regions
/// and outer scopes say: `["hlotag.unset"]`. In flight only.
bool isUnset(Attribute value);
Attribute unsetValue(MlirContext context);

inline bool startsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

/// Why an operation gets entries.
struct Reason {
  std::string_view step = {};            ///< what the pass did, in few words
  Operation from = {};                   ///< the operation that had them, if one did
  std::optional<double> confidence = {}; ///< where it was inferred that they belong here
};

/// Adds entries to dictionaries that hang on operations. Many operations get the same entries, so
/// each distinct (existing, entries) pair is merged once and looked up by pointer afterwards.
class TagWriter {
public:
  explicit TagWriter(Rewriter &rewriter);

  /// The attribute `name` of `op`, or null. Throws IRError if it is no dictionary.
  static DictionaryAttr dictionary(Operation op, std::string_view name);
  /// The frontend attributes of `op`, or null.
  static DictionaryAttr get(Operation op) { return dictionary(op, kFrontendAttributes); }

  /// Adds `entries` to the frontend attributes; those that the operation has under the same key
  /// stay as they are. Returns whether the operation changed.
  bool add(Operation op, DictionaryAttr entries, const Reason &reason = {});
  /// Adds `entries` to `hlotag.attached`, which is `present` now; there, they win.
  bool addAttached(Operation op, DictionaryAttr present, DictionaryAttr entries) {
    anyAttached_ = true;
    return addTo(op, attached_, present, entries, /*overwrite=*/true);
  }
  /// Whether any of `operations`, those of the module, may have `hlotag.attached`; looked for once,
  /// for without rules none has, and passes need not ask each.
  bool anyAttached(const OpList &operations);
  /// Rules have not seen the module yet: none has, unless they are known to have.
  void assumeNoneAttached() { anyAttached_ = anyAttached_.value_or(false); }
  /// Something else changed the module and may have attached entries.
  void forgetAttached() {
    if (!anyAttached_.value_or(false))
      anyAttached_.reset();
  }
  /// What rules put on `op`, or null; not looked for where nothing has any.
  DictionaryAttr getAttached(Operation op) const {
    bool isAnywhere = anyAttached_.value_or(true);
    return isAnywhere ? dictionary(op, kAttached) : DictionaryAttr();
  }

  /// Puts exactly `entries` there; null or empty removes the attribute.
  bool set(Operation op, DictionaryAttr entries, const Reason &reason = {});

  /// From now on `pass` adds the entries, and `hlotag.origins` is to say so. Empty: it is not.
  void recordOrigins(std::string_view pass) { recordedPass_ = pass; }
  bool recordsOrigins() const { return !recordedPass_.empty(); }

  /// `existing` with what `entries` adds; either may be null.
  DictionaryAttr merge(DictionaryAttr existing, DictionaryAttr entries, bool overwrite = false);

  Identifier origins() const { return origins_; }

private:
  bool addTo(Operation op, Identifier name, DictionaryAttr present, DictionaryAttr entries,
             bool overwrite);
  DictionaryAttr mergeUncached(DictionaryAttr existing, DictionaryAttr entries, bool overwrite);
  void updateOrigins(Operation op, DictionaryAttr before, DictionaryAttr after,
                     const Reason &reason);
  DictionaryAttr record(const Reason &reason);

  Rewriter &rewriter_;
  Identifier frontendAttributes_;
  Identifier attached_;
  Identifier origins_;
  std::string_view recordedPass_;
  std::optional<bool> anyAttached_;
  PointerPairMap<DictionaryAttr> merged_[2]; // by what is there and what is added; overwriting it
};

} // namespace hlotag::ir
