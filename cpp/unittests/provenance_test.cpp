// SPDX-License-Identifier: Apache-2.0
#include "hlotag/analysis/name_path.h"
#include "testing.h"

#include <algorithm>
#include <random>

using namespace hlotag::analysis;

namespace {

template <class Strings> std::string join(const Strings &elements) {
  std::string text;
  for (const auto &element : elements)
    text.append(text.empty() ? "" : "|").append(element);
  return text;
}

std::string scopes(std::string_view name) { return join(parseName(name).scopes); }
std::string transforms(std::string_view name) { return parseName(name).transforms; }

} // namespace

TEST(name_path_splits_outside_parentheses) {
  CHECK_EQ(join(splitName("jit(f)/jvp(a/b)/mul")), "jit(f)|jvp(a/b)|mul");
  CHECK_EQ(join(splitName("a(b/mul")), "a(b|mul");
  CHECK_EQ(join(splitName("a)b/mul")), "a)b|mul");
  CHECK_EQ(splitName("").size(), 1u);
  CHECK_EQ(splitName("//").size(), 3u);
}

TEST(name_path_unwraps_transforms) {
  const char *name = "jit(f)/transpose(jvp(blk))/mul";
  CHECK_EQ(scopes(name), "blk");
  CHECK_EQ(transforms(name), "tj");
  CHECK(parseName(name).isTransposed());
  CHECK(!parseName("jit(f)/jvp(blk)/mul").isTransposed());
  CHECK_EQ(scopes("jit(f)/vmap(transpose(jvp(a)))/b/mul"), "a|b");
  CHECK_EQ(transforms("jit(f)/transpose(jvp(transpose(jvp(a))))/mul"), "tjtj");
  CHECK_EQ(scopes("jit(f)/transpose(jvp())/mul"), "");
  CHECK_EQ(scopes("jit(f)/jvp(a/b)/mul"), "a|b");
}

TEST(name_path_handles_callees) {
  CHECK_EQ(transforms("jit(f)/transpose(jvp(jit(g)))"), "tj");
  CHECK_EQ(scopes("jit(f)/jvp(S)/jit(g)/mul"), "S");
  CHECK_EQ(scopes("jit(f)/jvp()/while/body/closed_call"), "while|body");
  CHECK_EQ(scopes("jit(f)/jvp()/while/body/eval_jaxpr/blk/mul"), "while|body|blk");
  CHECK(endsInCall("jit(f)/blk/transpose(jvp(jit(g)))"));
  CHECK(endsInCall("jit(f)/while/body/closed_call"));
  CHECK(!endsInCall("jit(f)/jvp(blk)"));
}

TEST(name_path_reads_escapes_as_text) {
  CHECK_EQ(unescape("a\x01%28\x01%29\x01%01/"), "a()\x01/");
  CHECK_EQ(unescape("\x01%"), "\x01%");
  CHECK_EQ(unescape("\x01%2"), "\x01%2");
  CHECK_EQ(unescape("\x01%2g\x01%28"), "\x01%2g(");
  const char *name = "jit(f)/jvp(transpose\x01%28x\x01%29)/mul\x01%28";
  CHECK_EQ(scopes(name), "transpose(x)");
  CHECK_EQ(transforms(name), "j");
}

TEST(name_path_drops_what_checkpoint_adds) {
  NamePath path =
      parseName("jit(f)/transpose(jvp(S))/jvp(S)/checkpoint/rematted_computation/b/tanh");
  CHECK_EQ(join(path.scopes), "S|b");
  CHECK(path.rematted);
  CHECK_EQ(scopes("jit(f)/transpose(jvp(S))/T/jvp(S)/T/checkpoint/mul"), "S|T");
  CHECK_EQ(scopes("jit(f)/transpose(jvp(S))/jvp(S)/add_any"), "S");
  CHECK_EQ(scopes("jit(f)/transpose(jvp(jvp()))/checkpoint/b/mul"), "b");
  // The user's own repetition stays.
  CHECK_EQ(scopes("jit(f)/jvp(S)/S/mul"), "S|S");
}

TEST(name_path_survives_forged_scopes) {
  // A scope `jvp(x)` cannot be told from the scope `x` under jvp.
  CHECK_EQ(scopes("jit(f)/jvp(x)/mul"), "x");
  CHECK_EQ(scopes("jit(f)/transpose(jvp(a(b))/mul"), "a(b");
  CHECK_EQ(transforms("jit(f)/transpose(jvp(a(b))/mul"), "tj");
  CHECK_EQ(scopes("jit(f)/jvp(a)b)/mul"), "a)b");
  CHECK_EQ(scopes("jit(f)/jvp/transpose/mul"), "jvp|transpose");
  CHECK_EQ(scopes("jit(f)/f(x)/mul"), "f(x)");
}

TEST(name_path_survives_noise) {
  const std::string_view pieces[] = {"jvp(", "transpose(", ")",    "/",
                                     "(",    "a",          "jit(", "checkpoint"};
  std::mt19937 random(7);
  for (int round = 0; round < 20000; ++round) {
    std::string name;
    for (unsigned i = 0, count = random() % 12; i < count; ++i)
      name += pieces[random() % 8];
    NamePath path = parseName(name);
    for (const std::string &scope : path.scopes)
      CHECK(!scope.empty());
  }
}

TEST(name_path_drops_the_longest_repeat) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::string> before, after;
    for (size_t i = random() % 7; i > 0; --i)
      before.push_back(random() % 2 ? "a" : "b");
    for (size_t i = random() % 7; i > 0; --i)
      after.push_back(random() % 2 ? "a" : "b");
    before.insert(before.begin(), "x");
    size_t length = std::min(before.size(), after.size());
    while (!std::equal(before.end() - length, before.end(), after.begin()))
      --length;
    std::vector<std::string> expected = before;
    expected.insert(expected.end(), after.begin() + length, after.end());
    std::string name;
    for (size_t i = 0; i < before.size(); ++i)
      name += i ? before[i] + "/" : "jvp(" + before[i] + ")/";
    for (size_t i = 0; i < after.size(); ++i)
      name += i ? after[i] + "/" : "jvp(" + after[i] + ")/";
    if (!after.empty())
      CHECK_EQ(scopes(name + "mul"), join(expected));
  }
}
