// SPDX-License-Identifier: Apache-2.0
#include "hlotag/analysis/scope_pattern.h"
#include "testing.h"

using namespace hlotag::analysis;

/// What the names of a pattern stand for in a path: `a=x b=y`, or `no match`.
static std::string match(const std::string &pattern, const std::string &path) {
  Paths paths;
  ScopeMatches matches(paths);
  const Bindings *bindings = matches.match(pattern, paths.append(0, path));
  if (!bindings)
    return "no match";
  std::string text;
  for (const auto &[name, value] : *bindings)
    text += (text.empty() ? "" : " ") + name + "=" + value;
  return text;
}

TEST(scope_patterns_bind_the_longest_text_that_leaves_room) {
  CHECK_EQ(match("layer_{n}", "layer_12"), "n=12");
  CHECK_EQ(match("layer_{n}", "layer_"), "no match");
  CHECK_EQ(match("{a}_{b}", "x_y_z"), "a=x_y b=z");
  CHECK_EQ(match("{a}{b}", "xyz"), "a=xy b=z");
  CHECK_EQ(match("*{a}", "xyz"), "a=z");
  CHECK_EQ(match("{a}*", "xyz"), "a=xyz");
  CHECK_EQ(match("*{a}*{b}*", "wxyz"), "a=y b=z");
  CHECK_EQ(match("{a}?", "xyz"), "a=xy");
}

TEST(scope_patterns_bind_within_one_element) {
  CHECK_EQ(match("{a}/{b}", "x/y"), "a=x b=y");
  CHECK_EQ(match("{a}/{a}", "x/y"), "a=x a=y"); // Each is bound by itself.
  CHECK_EQ(match("a_{n}/b", "a_1/c"), "no match");
  CHECK_EQ(match("a_{n}/b", "o/a_1/b/c"), "n=1");
  CHECK_EQ(match("a*{n}", "a/b"), "n=b"); // A star goes on in other elements.
}

TEST(scope_patterns_take_the_last_match) {
  CHECK_EQ(match("block_{n}", "block_1/block_2/other"), "n=2");
  CHECK_EQ(match("{a}*", "x/y"), "a=x"); // What began first wins.
  CHECK_EQ(match("block_{n}/*/leaf", "block_1/block_2/x/leaf"), "n=1");
}

TEST(scope_patterns_read_characters_not_bytes) {
  CHECK_EQ(match("?_{n}", "\xC3\xA9_\xC3\xA8"), "n=\xC3\xA8");
}
