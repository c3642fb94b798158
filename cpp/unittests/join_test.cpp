// SPDX-License-Identifier: Apache-2.0
#include "join_checks.h"

using namespace hlotag::hlo;
using hlotag::testing::HloText;
using hlotag::testing::joined;
using hlotag::testing::programOf;

TEST(join_by_name) {
  CHECK_RULE("name", "0 = stablehlo.sine[4](_) result", R"(
    main:
      x = parameter[4]
      s = sine[4](x) "#0/f/sin")",
             "s 0", "s 0"); // The program's result is a sine, too.
  CHECK_RULE("name", "0 = stablehlo.sine[4](_)", R"(
    main:
      x = parameter[4]
      s = sine[4](x) "#0/f/sin")",
             "s 0", "");
}

TEST(join_helpers_that_have_the_name_of_their_user) {
  CHECK_RULE("helper", R"(
    0 = stablehlo.broadcast_in_dim[4](_)
    1 = stablehlo.multiply[4](_, 0) helpers=0)",
             R"(
    main:
      x = parameter[4]
      c = constant
      b = broadcast[4](c) "#1/f/mul"
      m = multiply[4](x, b) "#1/f/mul")",
             "c 0, b 0, m 1", "c 0, b 0, m 1"); // Or by `move`.
  CHECK_RULE("helper", R"(
    0 = stablehlo.compare[4](_, _)
    1 = stablehlo.select[4](0, _, _) helpers=0)",
             R"(
    main:
      x = parameter[4]
      c = compare[4](x, x) "#1/f/where"
      s = select[4](c, x, x) "#1/f/where")",
             "c 0, s 1", "c 1, s 1");
  // Two helpers of one kind: it is not known which.
  CHECK_RULE("helper", R"(
    0 = stablehlo.compare[4](_, _)
    1 = stablehlo.compare[4](_, _)
    2 = stablehlo.select[4](0, _, _) helpers=0 helpers=1)",
             R"(
    main:
      x = parameter[4]
      c = compare[4](x, x) "#2/f/where"
      s = select[4](c, x, x) "#2/f/where")",
             "c 1, s 2", "c 2, s 2");
}

TEST(join_moves_that_have_the_name_of_a_neighbour) {
  const std::string program = R"(
    0 = stablehlo.transpose[8,4](_)
    1 = stablehlo.dot_general[8,8](0, _))";
  CHECK_RULE("move", program, R"(
    main:
      x = parameter[4,8]
      t = transpose[8,4](x) "#1/f/dot_general"
      d = dot[8,8](t, x) "#1/f/dot_general")",
             "t 0, d 1", "t 0, d 1"); // Or by `wanted`.
  // Of another size than what the user expects, it may be anything.
  CHECK_RULE("move", program, R"(
    main:
      x = parameter[4,8]
      t = transpose[8,2](x) "#1/f/dot_general"
      d = dot[8,8](t, x) "#1/f/dot_general")",
             "t 1, d 1", "t 0, d 1");
  // A move in a loop has the loop's name, and is none of the loop's.
  CHECK_RULE("move", "0 = stablehlo.while[4,8](_)\n 1 = stablehlo.reshape[32](0)", R"(
    main:
      x = parameter[4,8]
      t = transpose[8,4](x) "#0/f/#1/reshape")",
             "t 1", "t 1");
  // The entries that XLA left decide between the two reshapes.
  CHECK_RULE("move", R"(
    0 = stablehlo.sine[4,8](_)
    1 = stablehlo.reshape[32](0) {k=a}
    2 = stablehlo.reshape[8,4](0) {k=b})",
             R"(
    main:
      x = parameter[4,8]
      s = sine[4,8](x) "#0/f/sin"
      r = reshape[8,4](s) {k=b} "#0/f/sin")",
             "s 0, r 2", "s 0, r 0");
}

TEST(join_what_has_the_name_of_a_move_behind_it) {
  CHECK_RULE("behind", R"(
    0 = stablehlo.dot_general[4,8](_, _)
    1 = stablehlo.transpose[8,4](0))",
             R"(
    main:
      x = parameter[8,8]
      d = dot[8,4](x, x) "#1/f/transpose")",
             "d 0", "d 1");
  CHECK_RULE("behind", R"(
    0 = stablehlo.sort[8](_)
    1 = stablehlo.transpose[8](0))",
             R"(
    main:
      x = parameter[8]
      s = sort[8](x) "#1/f/transpose")",
             "s 0", "s 1");
}

TEST(join_what_has_no_name_with_what_its_users_take) {
  const std::string program = R"(
    0 = stablehlo.cosine[4](_)
    1 = stablehlo.exponential[4](_)
    2 = stablehlo.subtract[4](0, 1))";
  CHECK_RULE("wanted", program, R"(
    main:
      x = parameter[4]
      c = cosine[4](x)
      e = exponential[4](x)
      s = subtract[4](c, e) "#2/f/sub")",
             "c 0, e 1, s 2", "c 2, e 2, s 2");
  // Operands that XLA swapped.
  CHECK_RULE("swapped", R"(
    0 = stablehlo.cosine[4](_)
    1 = stablehlo.multiply[4](0, _))",
             R"(
    main:
      x = parameter[4]
      c = cosine[4](x)
      m = multiply[4](x, c) "#1/f/mul")",
             "c 0, m 1", "c 1, m 1");
  CHECK_RULE("swapped", R"(
    0 = stablehlo.cosine[4](_)
    1 = stablehlo.multiply[4](0, _))",
             R"(
    main:
      x = parameter[4]
      c = cosine[2,2](x)
      b = bitcast[4](c)
      m = multiply[4](x, b) "#1/f/mul")",
             "c 0, m 1", "c 1, m 1");
  // Through a bitcast, which hands on what is expected.
  CHECK_RULE("wanted", program, R"(
    main:
      x = parameter[4]
      c = cosine[2,2](x)
      b = bitcast[4](c)
      s = subtract[4](b, x) "#2/f/sub")",
             "c 0, s 2", "c 2, s 2");
}

TEST(join_what_has_no_name_with_the_name_of_a_move_unless_it_is_a_helper) {
  CHECK_EQ(joined(R"(
    0 = stablehlo.dot_general[4,8](_, _)
    1 = stablehlo.sine[4,8](_))",
                  HloText(R"(
    main:
      x = parameter[8,8]
      d = dot[4,8](x, x)
      t = transpose[8,4](d) "#0/f/dot_general"
      s = sine[4,8](d) "#1/f/sin")")),
           "d 0, t 0, s 1");
  CHECK_EQ(joined(R"(
    0 = stablehlo.broadcast_in_dim[4](_)
    1 = stablehlo.multiply[4](_, 0) helpers=0)",
                  HloText(R"(
    main:
      x = parameter[4]
      p = multiply[4](x, x)
      b = broadcast[4](p) "#1/f/mul"
      m = multiply[4](x, b) "#1/f/mul")")),
           "p 0, b 0, m 1");
}

TEST(join_what_helps_an_operation_with_it_and_not_with_its_operands) {
  // TPU's compiler packs a mask that a backward pass needs.
  CHECK_EQ(
      joined(R"(
    0 = stablehlo.sine[4,8](_)
    1 = stablehlo.compare[4,8](0, _)
    2 = stablehlo.select[4,8](1, 0, _))",
             HloText(R"(
    either:
      a = parameter
      b = parameter index=1
      o = or(a, b)
    main:
      x = parameter[4,8]
      zero = constant
      zeros = broadcast[4,8](zero)
      sine = sine[4,8](x) "#0/f/sin"
      positive = compare[4,8](sine, zeros) "#1/f/gt"
      bit = convert[4,8](positive)
      column = iota[4,8]
      shifted = shift-left[4,8](bit, column)
      packed = reduce[4](shifted, zero) calls=either
      rows = broadcast[4,8](packed)
      taken = and[4,8](column, rows)
      mask = convert[4,8](taken) "#1/f/gt"
      kept = select[4,8](mask, sine, zeros) "#2/f/select")")),
      "o 1, zero 1 2, zeros 1 2, sine 0, positive 1, bit 1, column 1, shifted 1, packed 1, rows 1, "
      "taken 1, mask 1, kept 2");
}

TEST(join_a_name_counts_if_data_flow_says_nothing) {
  CHECK_RULE("kept-name", "0 = stablehlo.divide[4](_, _)", R"(
    main:
      x = parameter[4]
      s = transpose[4](x) "#0/f/div")",
             "s 0", "s 0");
}

TEST(join_constants_with_the_operations_of_their_users) {
  CHECK_RULE("owner", "0 = stablehlo.add[4](_, _)\n1 = stablehlo.multiply[4](_, _)", R"(
    main:
      x = parameter[4]
      c = constant
      a = add[4](x, c) "#0/f/add"
      m = multiply[4](x, c) "#1/f/mul")",
             "c 0 1, a 0, m 1", "a 0, m 1");
  // A tuple owns nothing that others use.
  CHECK_RULE("owner", "0 = stablehlo.add[4](_, _)\n1 = stablehlo.tuple(0)", R"(
    main:
      x = parameter[4]
      c = constant
      a = add[4](x, c) "#0/f/add"
      t = tuple(c, a) "#1/f/tuple")",
             "c 0, a 0, t 1", "a 0, t 1");
}

TEST(join_the_body_of_a_loop_that_an_operation_expands_to) {
  CHECK_RULE("owner", "0 = stablehlo.scatter[4](_, _, _)", R"(
    body:
      p = parameter[4]
      n = negate[4](p)
    main:
      x = parameter[4]
      w = while[4](x) calls=body "#0/f/scatter")",
             "n 0, w 0", "w 0");
  CHECK_RULE("owner", "0 = stablehlo.while[4](_)", R"(
    body:
      p = parameter[4]
      n = negate[4](p)
    main:
      x = parameter[4]
      w = while[4](x) calls=body "#0/f/while")",
             "w 0", "w 0");
}

TEST(join_fusions_with_the_heaviest_in_them) {
  const std::string program = R"(
    0 = stablehlo.dot_general[4,4](_, _)
    1 = stablehlo.add[4,4](0, _))";
  CHECK_RULE("heaviest", program, R"(
    fused:
      p = parameter[4,4]
      d = dot[4,4](p, p) "#0/f/dot_general"
      a = add[4,4](d, p) "#1/f/add"
    main:
      x = parameter[4,4]
      f = fusion[4,4](x) calls=fused "#1/f/add")",
             "d 0, a 1, f 0", "d 0, a 1, f 1");
  CHECK_RULE("root", program, R"(
    fused:
      p = parameter[4,4]
      a = add[4,4](p, p) "#1/f/add"
      c = copy[4,4](a)
    main:
      x = parameter[4,4]
      f = fusion[4,4](x) calls=fused)",
             "a 1, f 1", "a 1");
  CHECK_RULE("root", program, R"(
    fused:
      p = parameter[4,4]
      n = copy[4,4](p)
      a = add[4,4](p, p) "#1/f/add"
      c = copy[4,4](a)
      t = tuple(n, c, a)
    main:
      x = parameter[4,4]
      f = fusion(x) calls=fused)",
             "a 1, f 1", "a 1");
}

TEST(join_the_nameless_in_a_body_with_their_caller) {
  CHECK_RULE("body", "0 = stablehlo.reduce[](_, _)", R"(
    sum:
      a = parameter
      b = parameter index=1
      s = add(a, b)
    main:
      x = parameter[4]
      z = constant
      r = reduce(x, z) calls=sum "#0/f/reduce_sum")",
             "s 0, z 0, r 0", "z 0, r 0");
}

TEST(join_adds_equal_operations_that_are_gone) {
  Program program = programOf(R"(
    0 = stablehlo.sine[4](_)
    1 = stablehlo.sine[4](_) value=0
    2 = stablehlo.sine[4](_))");
  std::vector<Numbers> ids = {{0}, {2}, {}};
  addEqual(ids, program);
  CHECK(ids == std::vector<Numbers>({{0, 1}, {2}, {}}));
  std::vector<Numbers> copies = {{0}, {0}, {0}}; // The first stands for all.
  addEqual(copies, program);
  CHECK(copies == std::vector<Numbers>({{0, 1}, {0}, {0}}));
  std::vector<Numbers> both = {{0}, {1}};
  addEqual(both, program);
  CHECK(both == std::vector<Numbers>({{0}, {1}}));
}

TEST(join_what_is_named_after_a_call_is_not_what_the_call_takes) {
  // TPU's compiler makes products of an FFT, and names them after the call that holds it.
  const std::string program = R"(
    0 = stablehlo.dot_general[4,8](_, _)
    1 = func.call[4,8](0)
    2 = stablehlo.sine[4,8](0))";
  CHECK_EQ(joined(program, HloText(R"(
    main:
      x = parameter[4,8]
      w = parameter[8,8] index=1
      product = dot[4,8](x, w) "#0/f/dot_general"
      expanded = dot[4,8](product, w) "#1/f/call")")),
           "product 0");
  NumberedName named{{1, 2}, {}};
  setCallsApart(named, programOf(program));
  CHECK(named.numbers == Numbers({2}) && named.callers == Numbers({1}));
}

TEST(join_names_of_other_programs_are_errors) {
  Program program = programOf("0 = stablehlo.sine[4](_)");
  HloText text("main:\n s = sine[4] \"#3/f/sin\"");
  Module module(text.data);
  CHECK_THROWS(readNames(module, program), std::invalid_argument, "names operation 3");
}

TEST(join_finds_a_product_heavier_than_larger_work) {
  HloText text(R"(
    fused:
      p = parameter[64,64]
      d = dot[2,2](p, p)
      s = sort[64,64](p)
    main:
      x = parameter[64,64]
      f = fusion[64,64](x) calls=fused)");
  CHECK_EQ(text.names[findHeaviest(Module(text.data))[text.number("f")]], "d");
}

TEST(join_finds_the_heaviest_through_nested_wrappers) {
  HloText text(R"(
    inner:
      p = parameter[4,4]
      d = dot[4,4](p, p)
    outer:
      q = parameter[4,4]
      r = reduce[4](q)
      f = fusion[4,4](q) calls=inner
    main:
      x = parameter[4,4]
      s = async-start[4,4](x) calls=outer
      e = async-done[4,4](s) calls=outer
      o = all-reduce-done[4,4]
      t = sine[4,4](x))");
  Module module(text.data);
  std::vector<size_t> heaviest = findHeaviest(module);
  for (std::string_view name : {"d", "f", "s", "e"})
    CHECK_EQ(text.names[heaviest[text.number(std::string(name))]], "d");
  for (const char *own : {"o", "t"}) // An end of nothing is malformed, and no other.
    CHECK_EQ(text.names[heaviest[text.number(own)]], own);
}
