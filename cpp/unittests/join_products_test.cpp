// SPDX-License-Identifier: Apache-2.0
#include "join_checks.h"

using namespace hlotag::hlo;
using hlotag::testing::HloText;
using hlotag::testing::joined;

TEST(join_combined_collectives_with_all_of_their_name) {
  CHECK_RULE("combined", R"(
    0 = stablehlo.add[4](_, _)
    1 = stablehlo.all_reduce[4](0)
    2 = stablehlo.all_reduce[4](_))",
             R"hlo(
    main:
      x = parameter[4]
      r = all-reduce(x, x) "(#1/f/psum:#2/f/psum)")hlo",
             "r 1 2", "r 1 2");
  CHECK_RULE("combined", R"(
    0 = stablehlo.all_reduce[4](_)
    1 = stablehlo.reshape[2,2](0)
    2 = stablehlo.all_reduce[4](_))",
             R"hlo(
    main:
      x = parameter[4]
      r = all-reduce(x, x) "(#1/f/reshape:#2/f/psum)")hlo",
             "r 0 2", "r 1 2");
}

TEST(join_slices_of_a_product_that_xla_made_of_two) {
  const std::string program = R"(
    0 = stablehlo.dot_general[4,8](_, _)
    1 = stablehlo.dot_general[4,8](_, _)
    2 = stablehlo.sine[4,8](0)
    3 = stablehlo.cosine[4,8](1))";
  CHECK_RULE("part", program, R"(
    main:
      x = parameter[4,4]
      w = parameter[4,16] index=1
      d = dot[4,16](x, w) "#1/f/v/dot_general"
      a = slice[4,8](d) "#1/f/v/dot_general"
      b = slice[4,8](d) "#1/f/v/dot_general"
      s = sine[4,8](a) "#2/f/sin"
      c = cosine[4,8](b) "#3/f/cos")",
             "d 1 0, a 0, b 1, s 2, c 3", "d 1, a 1, b 1, s 2, c 3");
  CHECK_RULE("part", program, R"(
    main:
      x = parameter[4,4]
      w = parameter[4,16] index=1
      d = dot[4,16](x, w) "#1/f/v/dot_general"
      t = transpose[16,4](d)
      a = slice[8,4](t) "#1/f/v/dot_general"
      b = slice[8,4](t) "#1/f/v/dot_general"
      s = sine[8,4](a) "#2/f/sin"
      c = cosine[8,4](b) "#3/f/cos")",
             "d 1 0, t 0 1, a 0, b 1, s 2, c 3", "d 1, t 1, a 1, b 1, s 2, c 3");
  // XLA expanded a third product, which takes a slice: what it broadcasts has its name.
  CHECK_EQ(joined(R"(
    0 = stablehlo.dot_general[4,8](_, _)
    1 = stablehlo.dot_general[4,8](_, _)
    2 = stablehlo.dot_general[4,2](0, _)
    3 = stablehlo.cosine[4,8](1))",
                  HloText(R"(
    main:
      x = parameter[4,4]
      w = parameter[4,16] index=1
      d = dot[4,16](x, w) "#1/f/v/dot_general"
      a = slice[4,8](d) "#1/f/v/dot_general"
      b = slice[4,8](d) "#1/f/v/dot_general"
      e = broadcast[4,8,2](a) "#2/f/dot_general"
      m = multiply[4,8,2](e, e) "#2/f/dot_general"
      c = cosine[4,8](b) "#3/f/cos")")),
           "d 1, a 1, b 1, e 2, m 2, c 3");
}

TEST(join_pieces_of_a_collective_as_the_last_piece) {
  CHECK_RULE("piece", R"(
    0 = stablehlo.all_gather[8](_)
    1 = stablehlo.sine[8](0))",
             R"(
    main:
      x = parameter[4]
      g = all-gather[8](x) channel=7
      h = all-gather[8](x) channel=7
      s = sine[8](h) "#1/f/sin")",
             "g 0, h 0, s 1", "h 0, s 1");
}

TEST(join_parts_of_a_collective_with_what_their_users_take) {
  const std::string program = R"(
    0 = stablehlo.all_reduce[4](_)
    1 = stablehlo.all_reduce[8](_)
    2 = stablehlo.sine[4](0)
    3 = stablehlo.cosine[8](1))";
  const std::string module = R"(
    main:
      x = parameter[4]
      y = parameter[8] index=1
      r = all-reduce(x, y) NAME
      a = get-tuple-element[4](r) index=0
      b = get-tuple-element[8](r) index=1
      s = sine[4](a) "#2/f/sin"
      c = cosine[8](b) "#3/f/cos")";
  CHECK_RULE("collective", program, std::regex_replace(module, std::regex("NAME"), ""),
             "r 1 0, s 2, c 3", "r 1 0, s 2, c 3"); // Or by `wanted`.
  // It has the name of one part.
  CHECK_RULE("collective", program, std::regex_replace(module, std::regex("NAME"), "\"#0/f/psum\""),
             "r 0 1, s 2, c 3", "r 0, s 2, c 3");
}

TEST(join_a_collective_that_the_program_returns_with_all_results) {
  CHECK_EQ(joined(R"(
    0 = stablehlo.all_reduce[4](_) result
    1 = stablehlo.all_reduce[8](_) result)",
                  HloText(R"(
    main:
      x = parameter[4]
      y = parameter[8] index=1
      r = all-reduce(x, y))")),
           "r 0 1");
}

TEST(join_sizes_tell_that_the_operands_of_a_product_are_swapped) {
  const std::string program = R"(
    0 = stablehlo.cosine[4,8](_)
    1 = stablehlo.sine[8,2](_)
    2 = stablehlo.dot_general[4,2](0, 1))";
  const std::string module = R"(
    main:
      x = parameter[4,8]
      y = parameter[8,2] index=1
      c = cosine[4,8](x)
      s = sine[8,2](y)
      d = dot[2,4](s, c) "#2/f/dot_general")";
  HloText text(module);
  CHECK_EQ(joined(program, text), "c 0, s 1, d 2");
}

TEST(join_a_collective_with_the_product_that_takes_a_part_of_it) {
  // XLA swapped the operands of the product, too.
  CHECK_EQ(joined(R"(
    0 = stablehlo.reduce_scatter[2,5](_)
    1 = stablehlo.sine[2,7](_)
    2 = stablehlo.dot_general[7,5](1, 0))",
                  HloText(R"(
    main:
      x = parameter[8,5]
      w = parameter[2,7] index=1
      place = parameter index=2
      whole = all-reduce[8,5](x)
      part = dynamic-slice[2,5](whole, place, place)
      product = dot[5,7](part, w) "#2/f/dot_general")")),
           "whole 0, part 2, product 2");
}

TEST(join_a_product_without_a_name_is_the_one_that_is_left) {
  const std::string module = R"(
    part:
      p = parameter[4,8]
      d = dot[3,4,4](p, p)
    main:
      x = parameter[4,8]
      g = dot[4,4](x, x) "#1/f/g/dot_general"
      f = fusion[3,4,4](x) calls=part
      b = bitcast[3,16](f)
      r = reduce[16](b)
      w = reduce-window[16](r) "#2/f/cumsum")";
  const std::string program = R"(
    0 = stablehlo.dot_general[4,4](_, _)
    1 = stablehlo.dot_general[4,4](_, _)
    2 = stablehlo.reduce_window[4,4](_))";
  CHECK_RULE("only", program, module, "d 0, g 1, f 0, r 0, w 2", "d 2, g 1, f 2, r 2, w 2");
  // A sum of the whole product is not the product.
  CHECK_EQ(joined(program, HloText(R"(
    main:
      x = parameter[4,8]
      g = dot[4,4](x, x) "#1/f/g/dot_general"
      d = dot[4,4](x, x)
      r = reduce[4](d)
      w = reduce-window[4](r) "#2/f/cumsum")")),
           "g 1, d 0, r 2, w 2");
  // Two of its size are left; or one, and another size; or one that a library's call computes.
  HloText text(module);
  CHECK_EQ(joined(program + "\n3 = stablehlo.dot_general[2,8](_, _)", text),
           "d 2, g 1, f 2, r 2, w 2");
  CHECK_EQ(joined(program + "\n3 = stablehlo.dot_general[2,2](_, _)", text),
           "d 0, g 1, f 0, r 0, w 2");
  CHECK_EQ(joined(program + "\n3 = stablehlo.dot_general[2,8](_, _)",
                  HloText(module + "\n      l = custom-call[2,8](x) \"#3/f/dot_general\"")),
           "d 0, g 1, f 0, r 0, w 2, l 3");
}
