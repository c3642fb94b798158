// SPDX-License-Identifier: Apache-2.0
#include "hlotag/analysis/pattern.h"
#include "testing.h"

using namespace hlotag::analysis;

namespace {

/// What names stand for: `a=x b=y`, or `no match`.
template <class Match> std::string describe(const Match &match) {
  if (!match)
    return "no match";
  std::string text;
  for (const auto &[name, value] : *match)
    text += (text.empty() ? "" : " ") + name + "=" + value;
  return text;
}

/// What the names of a pattern stand for in a path.
std::string match(const std::string &pattern, const std::string &path) {
  Paths paths;
  ScopeMatches matches(paths);
  return describe(matches.match(pattern, paths.append(0, path)));
}

std::string matchText(const std::string &pattern, const std::string &text) {
  return describe(TextPattern(pattern).match(text));
}

std::string matchSource(const std::string &pattern) {
  return describe(TextPattern(pattern).matchSource("/dir/m_1.py", 7, 3));
}

} // namespace

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

TEST(text_patterns_are_for_the_whole_text) {
  CHECK_EQ(matchText("f*", "forward"), "");
  CHECK_EQ(matchText("f", "forward"), "no match");
  CHECK_EQ(matchText("layer_{n}", "layer_3"), "n=3");
  CHECK_EQ(matchText("layer_{n}", "a/layer_3"), "no match");
  CHECK_EQ(matchText("layer_{n}", "layer_3/b"), "no match");
  CHECK_EQ(matchText("*/{n}", "a/b/c"), "n=c");
  CHECK_EQ(matchText("{n}/**", "a/b"), "n=a"); // Stars are text of any length, at an end too.
  TextPattern pattern("x{n}");
  CHECK_EQ(describe(pattern.match("x1")), "n=1"); // A pattern keeps nothing of its last text.
  CHECK_EQ(describe(pattern.match("y1")), "no match");
  CHECK_EQ(describe(pattern.match("x2")), "n=2");
}

TEST(text_patterns_of_sources_may_be_the_end_of_a_path) {
  for (const char *whole :
       {"/dir/m_1.py", "m_1.py", "**/m_1.py", "m_1.py:7", "m_1.py:7:3", "dir/*:7"})
    CHECK_EQ(matchSource(whole), "");
  CHECK_EQ(matchSource("m_{n}.py:{line}"), "n=1 line=7");
  for (const char *other : {"_1.py", "m_1", "m_1.py:8", "m_1.py:7:4", "other/m_1.py"})
    CHECK_EQ(matchSource(other), "no match");
}

TEST(patterns_that_are_none_say_why) {
  CHECK_EQ(whyNoPattern("layer_{n}/*", true), "");
  CHECK_EQ(
      whyNoPattern("a[0]", true),
      "'[' in 'a[0]' has no meaning here; patterns have * for any text and ? for one character, "
      "and {n} for the text of a value");
  CHECK_EQ(
      whyNoPattern("{n}", false),
      "'{' in '{n}' has no meaning here; patterns have * for any text and ? for one character");
  for (const char *braces : {"{}", "{1}", "{a b}", "{", "a}"})
    CHECK(!whyNoPattern(braces, true).empty());
  CHECK_EQ(whyNoPattern("{n}/{n}", true), "a name in braces occurs twice in '{n}/{n}'");
  CHECK(namesIn("{a}_{b1}{_c}{}") == (std::vector<std::string>{"a", "b1", "_c"}));
}
