// SPDX-License-Identifier: Apache-2.0
//
// The names that JAX writes into locations, taken apart. Strings only, no MLIR.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hlotag::analysis {

/// A name like `jit(f)/transpose(jvp(blk))/checkpoint/rematted_computation/mul`.
struct NamePath {
  /// The scopes, outermost first, without transforms, wrapped callees (`jit(f)`), empties, JAX's
  /// own `checkpoint`, `rematted_computation`, `closed_call` and `eval_jaxpr`, and the primitive.
  std::vector<std::string> scopes;
  /// One letter each, outermost first: `j`vp, `t`ranspose, `v`map.
  std::string transforms;
  /// The last element, e.g. `mul`; a call's is the callee it wraps, e.g. `jit(g)`.
  std::string primitive;
  /// The first element as written: tells whether a name continues another one.
  std::string head;
  bool checkpointed = false; ///< inside a function under `jax.checkpoint`, as transposed
  bool rematted = false;     ///< a forward operation computed again

  /// The scopes as they are written.
  std::string scope() const;
  bool isTransposed() const { return transforms.find('t') != std::string::npos; }
};

/// The elements of `name`: split at each `/` that no pair of parentheses encloses. A parenthesis
/// without a partner is an ordinary character.
std::vector<std::string_view> splitName(std::string_view name);

/// Whether the last element of `name` is what JAX calls a call: `jit(f)`, `jvp(jit(f))`,
/// `closed_call`.
bool endsInCall(std::string_view name);

/// Takes `name` apart. Never fails: what is no transform is a scope. Escaped characters are plain
/// text of their scope. Without escapes, text decides: the scope `jvp(x)` reads as the scope `x`
/// under a transform. A scope `a/b` reads as two.
NamePath parseName(std::string_view name);

/// Set on a module whose names have escapes.
inline constexpr std::string_view kEscaped = "hlotag.escaped";

/// `name` with its escapes replaced. An escape, `\x01%28`, is a character of a user's scope in
/// hexadecimal: lowering writes one where the character would read as JAX's or hlotag's own.
std::string unescaped(std::string_view name);

} // namespace hlotag::analysis
