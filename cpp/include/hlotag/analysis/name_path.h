// SPDX-License-Identifier: Apache-2.0
//
// What does a name mean that JAX wrote into a location? Strings only, no MLIR.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace hlotag::analysis {

/// A name like `jit(f)/transpose(jvp(blk))/checkpoint/rematted_computation/mul`.
struct NamePath {
  /// The user's scopes, outermost first. Leaves out transforms, wrapped callees (`jit(f)`), empty
  /// elements, the primitive, and JAX's own elements: `checkpoint`, `rematted_computation`,
  /// `closed_call`, `eval_jaxpr`.
  std::vector<std::string> scopes;
  /// One letter each, outermost first: `j`vp, `t`ranspose, `v`map.
  std::string transforms;
  /// The first element as written. Equal in names that continue each other.
  std::string head;
  int order = 0;         ///< the most jvps in one element: 2 for the derivative of a derivative
  bool rematted = false; ///< a forward operation computed again

  bool isDifferentiated() const { return transforms.find('j') != std::string::npos; }
  bool isTransposed() const { return transforms.find('t') != std::string::npos; }
  int numTransposes() const { return int(std::count(transforms.begin(), transforms.end(), 't')); }
};

/// Returns the phase of an operation: `backward`, `recomputed`, `forward`, or nothing outside of
/// what is differentiated.
inline std::string_view phaseOf(bool isDifferentiated, bool isTransposed, bool isRematted) {
  if (isTransposed)
    return isRematted ? "recomputed" : "backward";
  return isDifferentiated ? "forward" : "";
}

/// Splits `name` at each `/` outside parentheses. An unbalanced parenthesis is an ordinary
/// character.
std::vector<std::string_view> splitName(std::string_view name);

/// Returns whether the last element of `name` names a call: `jit(f)`, `jvp(jit(f))`,
/// `closed_call`.
bool endsInCall(std::string_view name);

/// Parses `name`. Never fails: an element is a scope unless it is a transform. Escaped characters
/// are plain text of their scope. A user's scope without escapes can be misread: `jvp(x)` as the
/// scope `x` under a transform, `a/b` as two scopes.
NamePath parseName(std::string_view name);

/// Attribute of a module whose names have escapes.
inline constexpr std::string_view kEscaped = "hlotag.escaped";

/// Returns `name` with escapes replaced by their characters. Lowering writes an escape, `\x01%28`
/// (hexadecimal), for characters of a user's scope with a meaning to JAX or hlotag.
std::string unescape(std::string_view name);

} // namespace hlotag::analysis
