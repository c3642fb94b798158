// SPDX-License-Identifier: Apache-2.0
//
// Which scope paths does a pattern match, and which text does a name in braces stand for, as `{n}`
// in `layer_{n}/attention`?
#pragma once

#include "hlotag/analysis/paths.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hlotag::analysis {

/// Names and their texts.
using Bindings = std::vector<std::pair<std::string, std::string>>;

/// A pattern for successive whole elements of a path. `*` matches any text, `?` one character, and
/// a name in braces one character or more of one element.
class ScopePattern {
public:
  explicit ScopePattern(std::string_view pattern);

  struct State;
  /// Returns the state after a path, from that after the path without its last element.
  State next(const State &outer, std::string_view element) const;

private:
  /// An element of a pattern: a character, `*`, `?`, or a name in braces.
  struct Token {
    char character = 0;
    std::string name; ///< without the braces; empty for a character
  };
  /// A way in which the pattern matches the text so far.
  struct Thread {
    size_t next = 0; ///< token
    Bindings bindings = {};

    bool isBinding(const Token &token) const;
    friend bool operator==(const Thread &a, const Thread &b) {
      return a.next == b.next && a.bindings == b.bindings;
    }
  };
  static void add(std::vector<Thread> &threads, Thread thread);
  void step(Thread thread, char character, std::vector<Thread> &after) const;

  std::vector<Token> tokens_;
};

/// What is known of a pattern after a path: by default, after the empty one.
struct ScopePattern::State {
  std::vector<Thread> threads{Thread()};
  /// The texts of the last match; none if there is no match.
  std::optional<Bindings> match;
};

/// The named scopes of paths, which leave out JAX's `while/body` and `cond/branch_1_fun`, and which
/// patterns they match. Computed once for each path and pattern, from the path without its last
/// element.
class Scopes {
public:
  /// `paths` must outlive this object.
  explicit Scopes(const Paths &paths) : paths_(paths) {}

  /// Returns the texts of the last match of `pattern` in the named scopes of `path`; null if there
  /// is none.
  const Bindings *match(const std::string &pattern, PathId path);

  /// Returns a path for the named scopes of `path`, without the regions of JAX's loops.
  PathId named(PathId path);

private:
  struct Known {
    ScopePattern pattern;
    ir::FlatMap<uint64_t, ScopePattern::State> states = {}; // by named path
  };
  const ScopePattern::State &stateAfter(Known &known, PathId named);

  const Paths &paths_;
  Paths names_;
  ir::FlatMap<uint64_t, PathId> named_; // by path: in `names_`
  std::map<std::string, Known> known_;
};

/// Replaces names in braces by their texts.
std::string substitute(std::string text, const Bindings &bindings);

} // namespace hlotag::analysis
