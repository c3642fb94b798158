// SPDX-License-Identifier: Apache-2.0
//
// Which attributes and which frontend-attribute keys are hlotag's own, or another library's?
#pragma once

#include "hlotag/ir/attributes.h"

#include <string_view>

namespace hlotag::ir {

inline constexpr std::string_view kFrontendAttributes = "mhlo.frontend_attributes";
/// In-flight record of a rule: what operations derived from this one get, where that differs from
/// what it got itself. In modules without their program only; `hlotag-finalize` removes it.
inline constexpr std::string_view kDerived = "hlotag.derived";
/// Origin of each entry, by key; written on request, and kept.
inline constexpr std::string_view kOrigins = "hlotag.origins";
/// Prefix of all in-flight attribute names and frontend-attribute keys.
inline constexpr std::string_view kReservedPrefix = "hlotag.";

/// Returns true for in-flight keys of hlotag, and for keys with a meaning to a partitioner or
/// exporter. Rules neither set nor change them.
bool isReservedKey(std::string_view key);

/// Returns whether passes may copy an entry with this key to other operations. False for keys that
/// JAX, Shardy and XLA write for one operation only: `num_batch_dims` of a LAPACK call,
/// `inlineable` of a call, placements, shardings.
bool isCarriedKey(std::string_view key);

/// Returns whether XLA reads the key, by the catalogue or by the form of its name. Such a key means
/// an operation among those of one computation, which XLA schedules, fuses and places together.
bool isXlaKey(std::string_view key);

/// The sentinel `["hlotag.unset"]`, in flight only: the key was removed from this operation, and
/// callers, regions and outer scopes must not restore it.
bool isUnset(Attribute value);
/// Returns the sentinel for each key of `entries`, which may be null.
DictionaryAttr unset(MlirContext context, DictionaryAttr entries);

} // namespace hlotag::ir
