// SPDX-License-Identifier: Apache-2.0
#include "hlotag/hlo/edit.h"
#include "hlotag/hlo/restore.h"

#include "hlo_text.h"
#include "testing.h"

using namespace hlotag;
using namespace hlotag::hlo;
using hlotag::testing::HloText;
using hlotag::testing::programOf;

namespace {

/// Gives the entries of the first operation, and notes what it is asked.
class FirstOperation : public Rules {
public:
  explicit FirstOperation(const Program &program) : program_(program) {}

  Entries entriesFor(const Case &asked) override {
    ++numAsked;
    last = asked;
    Entries given = program_.entries[asked.own[0]];
    if (asked.inside)
      given = *asked.inside;
    if (asked.isCombined)
      given["combined"] = "true";
    if (!asked.isOperation)
      given["helper"] = "true";
    return given;
  }
  bool isRepeated(std::string_view key) override { return key == "repeated"; }
  std::string labelFor(const Entries &entries) override {
    auto found = entries.find("label");
    return found == entries.end() ? "" : found->second;
  }

  int numAsked = 0;
  Case last;

private:
  const Program &program_;
};

/// The entries and the name of each instruction that has any: `s {k=v} f/sin`.
std::string describe(const std::string &data, const HloText &text) {
  Module module(data);
  std::string found;
  for (size_t i = 0; i < module.instructions.size(); ++i) {
    std::string entries;
    for (const auto &[key, value] : module.attributes(i))
      entries.append(entries.empty() ? "" : " ").append(key).append("=").append(value);
    std::string_view name = module.instructions[i].opName;
    if (entries.empty() && name.empty())
      continue;
    found.append(found.empty() ? "" : ", ").append(text.names[i]);
    found.append(entries.empty() ? "" : " {" + entries + "}");
    found.append(name.empty() ? "" : " ").append(name);
  }
  return found;
}

std::string restored(const std::string &program, const std::string &module) {
  HloText text(module);
  Program of = programOf(program);
  FirstOperation rules(of);
  return describe(restore(text.data, of, rules, /*keepsNumbers=*/false), text);
}

} // namespace

TEST(restore_gives_entries_and_removes_numbers) {
  CHECK_EQ(restored("0 = stablehlo.sine[4](_) {k=v}", R"(
    main:
      x = parameter[4] {mine=1}
      s = sine[4](x) {k=old other=1} "#0/f/sin")"),
           "x {mine=1}, s {k=v} f/sin");
}

TEST(restore_writes_a_label_before_the_last_part_of_a_name) {
  CHECK_EQ(restored("0 = stablehlo.sine[4](_) {label=layer}", R"(
    main:
      x = parameter[4]
      s = sine[4](x) "#0/f/sin"
      c = copy[4](s) {label=own})"),
           "s {label=layer} f/layer/sin, c {label=own}");
}

TEST(restore_leaves_a_module_that_has_all_as_it_is) {
  HloText text("main:\n x = parameter[4]\n s = sine[4](x) {k=v} \"f/sin\"");
  Program program = programOf("0 = stablehlo.sine[4](_) result {k=v}");
  FirstOperation rules(program);
  CHECK_EQ(restore(text.data, program, rules, /*keepsNumbers=*/false), text.data);
  CHECK_EQ(rules.numAsked, 1);
}

TEST(restore_keeps_numbers_if_it_is_asked_to) {
  HloText text("main:\n x = parameter[4]\n s = sine[4](x) \"#0/f/sin\"");
  Program program = programOf("0 = stablehlo.sine[4](_) {label=l}");
  FirstOperation rules(program);
  CHECK_EQ(describe(restore(text.data, program, rules, /*keepsNumbers=*/true), text),
           "s {label=l} \1ab:0\1/f/sin");
}

TEST(restore_asks_once_for_equal_instructions) {
  HloText text(R"(
    main:
      x = parameter[4]
      a = sine[4](x) "#0/f/sin"
      b = sine[4](a) "#0/f/sin"
      c = sine[4](b) {k=left} "#0/f/sin")");
  Program program = programOf("0 = stablehlo.sine[4](_) {k=v}");
  FirstOperation rules(program);
  CHECK_EQ(describe(restore(text.data, program, rules, false), text),
           "a {k=v} f/sin, b {k=v} f/sin, c {k=v} f/sin");
  CHECK_EQ(rules.numAsked, 2);
}

TEST(restore_tells_what_computes_an_operation_from_what_helps) {
  CHECK_EQ(restored("0 = stablehlo.add[4](_, _) {k=v}", R"(
    main:
      x = parameter[4]
      c = constant
      n = constant "#0/f/add"
      a = add[4](x, c) "#0/f/add")"),
           "c {helper=true k=v}, n {helper=true k=v} f/add, a {k=v} f/add");
}

TEST(restore_tells_combined_collectives) {
  const std::string program = R"(
    0 = stablehlo.all_reduce[4](_) {k=a}
    1 = stablehlo.all_reduce[4](_) {k=b})";
  CHECK_EQ(restored(program, R"hlo(
    main:
      x = parameter[4]
      r = all-reduce(x, x) "(#0/f/psum:#1/f/pmax)")hlo"),
           "r {combined=true k=a} f/(psum:pmax)");
  CHECK_EQ(restored(program, R"hlo(
    main:
      x = parameter[4]
      r = all-reduce(x) "(#0/f/psum:#1/f/pmax)")hlo"),
           "r {combined=true k=a} f/(psum:pmax)");
  CHECK_EQ(restored(program, R"hlo(
    main:
      x = parameter[4]
      r = all-reduce[4](x) "#0/f/psum;#1/f/pmax")hlo"),
           "r {k=a} f/psum;f/pmax");
}

TEST(restore_does_not_repeat_the_entries_of_a_fusion_in_it) {
  CHECK_EQ(restored("0 = stablehlo.add[4](_, _) {k=v repeated=1}", R"(
    fused:
      p = parameter[4]
      a = add[4](p, p) {k=v} "#0/f/add"
    main:
      x = parameter[4]
      f = fusion[4](x) calls=fused "#0/f/add")"),
           "a {repeated=1} f/add, f {k=v repeated=1} f/add");
}

TEST(restore_leaves_constants_in_fusions_without_entries) {
  CHECK_EQ(restored(R"(
    0 = stablehlo.add[4](_, _) {k=v}
    1 = stablehlo.constant {k=w repeated=1})",
                    R"(
    fused:
      p = parameter[4]
      c = constant {k=w repeated=1} "#1/f/c"
      a = add[4](p, c) "#0/f/add"
    main:
      x = parameter[4]
      f = fusion[4](x) calls=fused "#0/f/add")"),
           "c {repeated=1} f/c, a f/add, f {k=v} f/add");
}

TEST(restore_gives_a_fusion_the_value_on_most_of_its_work) {
  const std::string program = R"(
    0 = stablehlo.add[64](_, _) {k=small only=1}
    1 = stablehlo.dot_general[8,8](_, _) {k=large}
    2 = stablehlo.multiply[64](_, _))";
  // `only` is on less than half of the work.
  CHECK_EQ(restored(program, R"(
    fused:
      p = parameter[64]
      a = add[4](p, p) "#0/f/add"
      b = add[64](p, p) "#1/f/dot_general"
      e = exponential[64](b) "#1/f/dot_general"
    main:
      x = parameter[64]
      f = fusion[64](x) calls=fused "#1/f/dot_general")"),
           "a {k=small only=1} f/add, b f/dot_general, e f/dot_general, f {k=large} f/dot_general");
  // What has no value is more.
  CHECK_EQ(restored(program, R"(
    fused:
      p = parameter[64]
      a = add[4](p, p) "#0/f/add"
      m = multiply[64](a, p) "#2/f/mul"
    main:
      x = parameter[64]
      f = fusion[64](x) calls=fused "#2/f/mul")"),
           "a {k=small only=1} f/add, m f/mul, f f/mul");
  const std::string moves = R"(
    0 = stablehlo.transpose[64](_) {k=a}
    1 = stablehlo.transpose[64](_) {k=b})";
  // All only move: they count alike, and what no operation became does not count.
  CHECK_EQ(restored(moves, R"(
    fused:
      p = parameter[64]
      t = bitcast[64](p) "#0/f/transpose"
      c = bitcast[64](t)
      i = bitcast[64](c) "#1/f/transpose"
    main:
      x = parameter[64]
      f = fusion[64](x) calls=fused "#1/f/transpose")"),
           "t f/transpose, i {k=b} f/transpose, f {k=a} f/transpose");
  // What is in a fusion within it has work.
  CHECK_EQ(restored(moves, R"(
    inner:
      q = parameter[64]
      g = sine[64](q) "#1/f/transpose"
    fused:
      p = parameter[64]
      t = transpose[64](p) "#0/f/transpose"
      i = fusion[64](t) calls=inner "#1/f/transpose"
    main:
      x = parameter[64]
      f = fusion[64](x) calls=fused "#1/f/transpose")"),
           "g f/transpose, t {k=a} f/transpose, i f/transpose, f {k=b} f/transpose");
}

TEST(restore_gives_a_fusion_the_value_on_half_of_its_work) {
  const std::string halves = "0 = stablehlo.sine[64](_) {k=a}\n 1 = stablehlo.cosine[64](_)";
  CHECK_EQ(restored(halves, R"(
    fused:
      p = parameter[64]
      s = sine[64](p) "#0/f/sin"
      c = cosine[64](s) "#1/f/cos"
    main:
      x = parameter[64]
      f = fusion[64](x) calls=fused "#1/f/cos")"),
           "s f/sin, c f/cos, f {k=a} f/cos");
}

TEST(restore_of_fusions_in_each_other_takes_no_stack) {
  // Two fusions of the one before, so that all effort is 2^`kDepth`.
  constexpr int kDepth = 20000;
  std::string module = "c0:\n p0 = parameter[64]\n s0 = sine[64](p0) \"#0/f/sin\"\n";
  for (int depth = 1; depth <= kDepth; ++depth) {
    std::string n = std::to_string(depth), before = std::to_string(depth - 1);
    module += "c" + n + ":\n p" + n + " = parameter[64]\n a" + n + " = fusion[64](p" + n +
              ") calls=c" + before + "\n b" + n + " = fusion[64](a" + n + ") calls=c" + before +
              " \"#0/f/sin\"\n";
  }
  std::string found = restored("0 = stablehlo.sine[64](_) {k=v}", module);
  CHECK(found.find(", b20000 {helper=true k=v} f/sin") != std::string::npos);
}

TEST(restore_gives_no_key_of_xlas_to_what_is_applied) {
  const std::string program = "0 = stablehlo.reduce[](_, _) {MUST_FUSE=1 _any=2 k=v}";
  CHECK_EQ(restored(program, R"(
    inner:
      c = parameter
      n = negate(c) "#0/f/reduce_sum"
    sum:
      a = parameter
      b = parameter index=1
      s = add(a, b) {_any=own} "#0/f/reduce_sum"
      t = call(s) calls=inner "#0/f/reduce_sum"
    main:
      x = parameter[4]
      z = constant
      r = reduce(x, z) calls=sum "#0/f/reduce_sum")"),
           "n {k=v} f/reduce_sum, s {_any=2 k=v} f/reduce_sum, t {k=v} f/reduce_sum, "
           "z {MUST_FUSE=1 _any=2 helper=true k=v}, r {MUST_FUSE=1 _any=2 k=v} f/reduce_sum");
}

TEST(restore_chains_stack_frames) {
  std::string frames, frame, module, file;
  wire::append(file, 1, std::string_view("name"));
  wire::append(frame, 1, uint64_t(5));
  wire::append(frame, fields::frames::kParent, uint64_t(9));
  wire::append(frames, 1, file);
  for (int i = 0; i < 2; ++i)
    wire::append(frames, fields::frames::kFrames, frame);
  wire::append(module, 1, std::string_view("m"));
  wire::append(module, fields::module::kStackFrames, frames);
  std::string expected, chained;
  wire::append(chained, 1, file);
  for (uint64_t parent : {0, 1}) {
    std::string each;
    wire::append(each, 1, uint64_t(5));
    wire::append(each, fields::frames::kParent, parent);
    wire::append(chained, fields::frames::kFrames, each);
  }
  wire::append(expected, 1, std::string_view("m"));
  wire::append(expected, fields::module::kStackFrames, chained);
  CHECK(chainFrames(module) == expected);
}
