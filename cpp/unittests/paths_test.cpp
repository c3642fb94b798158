// SPDX-License-Identifier: Apache-2.0
#include "hlotag/analysis/paths.h"
#include "testing.h"

#include <random>

using namespace hlotag::analysis;

TEST(paths_are_equal_if_their_elements_are) {
  Paths paths;
  PathId abc = paths.append(0, "a/b/c");
  CHECK_EQ(paths.append(paths.append(0, "a"), "b/c"), abc);
  CHECK_EQ(paths.nest(paths.append(0, "a/b"), paths.append(0, "c")), abc);
  CHECK_EQ(paths.nest(0, abc), abc);
  CHECK_EQ(paths.nest(abc, 0), abc);
  CHECK(paths.append(0, "a/bc") != abc);
  CHECK_EQ(paths.text(abc), "a/b/c");
  CHECK_EQ(paths.text(paths.outer(abc)), "a/b");
  CHECK_EQ(paths.element(abc), "c");
  CHECK_EQ(paths.text(0), "");
}

TEST(paths_have_their_longest_common_prefix) {
  Paths paths;
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    PathId common = 0;
    for (unsigned i = random() % 40; i > 0; --i)
      common = paths.append(common, random() % 2 ? "a" : "b");
    PathId left = common, right = common;
    for (unsigned i = random() % 40; i > 0; --i)
      left = paths.append(left, left == common ? "l" : "a");
    for (unsigned i = random() % 40; i > 0; --i)
      right = paths.append(right, right == common ? "r" : "a");
    CHECK_EQ(paths.commonPrefix(left, right), common);
    CHECK_EQ(paths.commonPrefix(right, left), common);
  }
}
