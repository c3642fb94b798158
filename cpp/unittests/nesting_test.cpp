// SPDX-License-Identifier: Apache-2.0
#include "hlotag/ir/nesting.h"
#include "testing.h"

#include <utility>

using hlotag::ir::nestingDepth;

TEST(nesting_of_text) {
  const std::pair<std::string, size_t> depths[] = {
      {"", 0},
      {"module {}", 1},
      {"({[<>]})", 4},
      {"() -> ()", 1},
      {"))))((", 2},
      {"[] ] [[", 2},
      {"/", 0},
      {std::string(50'000, '['), 50'000},
      // Strings and comments do not count.
      {R"(loc("((((")", 1},
      {R"("\"((" [)", 1},
      {"\"(((", 0},
      {"// ((((\n[]", 1},
      // Signs of comparison are no brackets.
      {"{affine_set<(d0) : (d0 >= 0)>, {{affine_set<(d0) : (d0 >= 0)>, {", 5},
      // Aliases are as deep as what they stand for.
      {"#a = [1]\n#b = [#a]\n[#b]", 5},
      {"!t =\n tuple<i32>\nf(!t)", 3},
      {"#a = [1]\nf([[1, 2]])\nf(#a)\nf(#a)", 3},
      {"#a = [1]\n  f([[1, 2]])\n  f(#a)", 3}, // An indented line ends an alias, too.
      // Operators of affine expressions.
      {"(- - -d0)", 4},
      {"(d0 mod 2 + (d1) + 1)", 4},
      {"[-1, -2, -3, -4]", 2},
      {"%c-1 = a -1 : i32\n%d-2 = a -1", 1},
  };
  for (const auto &[text, depth] : depths)
    hlotag::testing::checkEqual(__FILE__, __LINE__, text.substr(0, 80).c_str(), nestingDepth(text),
                                depth);
}
