// SPDX-License-Identifier: Apache-2.0
//
// What does a pattern of a rule match, and which text does a name in braces stand for, as `{n}` in
// `layer_{n}/attention`? One grammar for all fields: `*` is any text, `?` one character, and a name
// in braces one character or more without a slash.
#pragma once

#include "hlotag/analysis/paths.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace hlotag::analysis {

/// Names and their texts.
using Bindings = std::vector<std::pair<std::string, std::string>>;

/// A pattern for successive whole elements of a path. It is an automaton, made as it is used:
/// the walk over a program and the pass hlotag-attach advance it element by element. An element
/// costs its length times that of the pattern.
class ScopePattern {
public:
  /// `isWhole`: the pattern is for a whole text, of one element or more.
  explicit ScopePattern(std::string_view pattern, bool isWhole = false);
  ScopePattern(ScopePattern &&) = default; // Copies would point into the original.

  /// How far the pattern matches a path. Equal ones are one number; that of the empty path is 0.
  using State = uint32_t;
  /// Returns the state after a path with more elements, which `/` separates, from that before them.
  State next(State before, std::string_view elements);
  /// Returns the texts of the last match that ends in the elements that led to `state`, or null.
  const Bindings *matchAt(State state) const {
    const auto &match = states_[state].match;
    return match ? &*match : nullptr;
  }

private:
  /// An element of a pattern.
  struct Token {
    std::string text; ///< a character, `*` or `?`; empty for a name
    std::string name; ///< without the braces
  };
  /// The text of a name, and of the names before it. Equal ones are one object.
  struct Bound {
    const Bound *before;
    size_t token;
    std::string text;

    friend bool operator<(const Bound &a, const Bound &b) {
      return std::tie(a.before, a.token, a.text) < std::tie(b.before, b.token, b.text);
    }
  };
  /// A way in which the pattern matches whole elements so far: the next token, and what is bound.
  using Thread = std::pair<size_t, const Bound *>;
  /// What tells states apart: threads, those that come first win, and the match that just ended.
  using Reached = std::pair<std::vector<Thread>, std::optional<const Bound *>>;
  friend class TextPattern;
  struct Known {
    const std::vector<Thread> *threads; ///< in `numbers_`
    std::optional<Bindings> match;
  };
  class Reader;

  State numberOf(Reached reached);
  Bindings textsOf(const Bound *last) const;

  std::vector<Token> tokens_;
  std::set<Bound> bound_;
  std::map<Reached, State> numbers_;
  std::vector<Known> states_;
};

/// A pattern for a whole text: of an operation's name, a function's, a line of source.
class TextPattern {
public:
  explicit TextPattern(std::string_view pattern);

  /// Returns the texts of the names if the pattern matches `text`.
  std::optional<Bindings> match(std::string_view text) const;
  /// As `match`, for `file`, `file:line` or `file:line:column`, or the end of one of these after a
  /// slash.
  std::optional<Bindings> matchSource(std::string_view file, int line, int column) const;

private:
  std::string text_;
  /// The pattern, if it has names.
  mutable std::optional<ScopePattern> named_;
};

/// Returns whether `pattern` matches an operation's name, with or without its dialect.
bool matchesOp(std::string_view pattern, std::string_view name);

/// Returns the names in braces in a pattern.
std::vector<std::string> namesIn(std::string_view pattern);

/// Returns why a text is no pattern of a field: it has a character of other globs, a name twice, or
/// a name where the field binds none. Empty if it is one.
std::string whyNoPattern(std::string_view pattern, bool bindsNames);

/// Which scope paths do patterns match? Computed once for each path and pattern, from the path
/// without its last element.
class ScopeMatches {
public:
  /// `paths` must outlive this object.
  explicit ScopeMatches(const Paths &paths) : paths_(paths) {}

  /// Returns the texts of the last match of `pattern` in `path`; null if there is none.
  const Bindings *match(const std::string &pattern, PathId path);

private:
  struct After {
    ScopePattern::State state = 0;
    const Bindings *match = nullptr; ///< the last one
  };
  struct Known {
    ScopePattern pattern;
    ir::FlatMap<uint64_t, After> states = {}; // by path
  };

  const Paths &paths_;
  std::map<std::string, Known> known_;
};

/// Replaces names in braces by their texts.
std::string substitute(std::string text, const Bindings &bindings);

} // namespace hlotag::analysis
