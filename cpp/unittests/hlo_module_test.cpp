// SPDX-License-Identifier: Apache-2.0
#include "hlotag/hlo/module.h"

#include "hlo_text.h"
#include "testing.h"

#include <algorithm>
#include <utility>

using namespace hlotag;
using namespace hlotag::hlo;
using hlotag::testing::HloText;

namespace {

/// The instruction that computes the value of another one.
std::string sourceOf(const HloText &text, const std::string &name) {
  return text.names[Module(text.data).findSource(text.number(name))];
}

} // namespace

TEST(hlo_values_are_followed_through_fusions) {
  HloText text(R"(
    fused:
      p = parameter
    main:
      x = parameter
      f = fusion(x) calls=fused)");
  CHECK_EQ(sourceOf(text, "f"), "x");
}

TEST(hlo_values_are_followed_through_asynchronous_pairs) {
  HloText text(R"(
    wrapped:
      p = parameter
      s = sine(p)
    main:
      x = parameter
      begin = async-start(x) calls=wrapped
      end = async-done(begin) calls=wrapped
      r = all-reduce-start(end)
      d = all-reduce-done(r))");
  CHECK_EQ(sourceOf(text, "end"), "s");
  CHECK_EQ(sourceOf(text, "p"), "x");
  CHECK_EQ(sourceOf(text, "d"), "r");
  CHECK_EQ(text.names[Module(text.data).findWrapped(text.number("begin"))], "s");
}

TEST(hlo_values_are_followed_into_tuples_and_loops) {
  HloText text(R"(
    body:
      p = parameter
      kept = get-tuple-element(p) index=0
      old = get-tuple-element(p) index=1
      from = get-tuple-element(p) index=2
      to = get-tuple-element(p) index=3
      new = sine(old)
      state = tuple(kept, new, to, from)
    main:
      x = parameter
      y = parameter index=1
      t = tuple(x, y, x, y)
      second = get-tuple-element(t) index=1
      loop = while(t) calls=body)");
  CHECK_EQ(sourceOf(text, "second"), "y");
  CHECK_EQ(sourceOf(text, "kept"), "x");
  CHECK_EQ(sourceOf(text, "old"), "old");
  CHECK_EQ(sourceOf(text, "from"), "from"); // The body swaps it with another one.
  CHECK_EQ(text.names[Module(text.data).findWrapped(text.number("second"))], "second");
}

TEST(hlo_computations_that_fusions_share_are_followed_no_further) {
  HloText text(R"(
    shared:
      p = parameter
    main:
      x = parameter
      f = fusion(x) calls=shared
      g = fusion(f) calls=shared)");
  CHECK_EQ(sourceOf(text, "g"), "p");
  CHECK_EQ(sourceOf(text, "f"), "p");
}

TEST(hlo_fusions_are_found_from_what_is_in_them) {
  HloText text(R"(
    sum:
      a = parameter
      b = parameter index=1
      s = add(a, b)
    fused:
      p = parameter
      r = reduce(p, p) calls=sum
    main:
      x = parameter
      f = fusion(x) calls=fused)");
  std::vector<int64_t> fusions = findFusions(Module(text.data));
  auto f = int64_t(text.number("f"));
  CHECK(fusions == std::vector<int64_t>({f, f, kNone}));
}

TEST(hlo_instructions_of_shared_computations_are_listed_once) {
  // Each computation calls the previous one twice, so 2^63 paths lead to the first.
  std::string lines = "c1:\n i1 = parameter\n";
  for (int i = 2; i <= 64; ++i) {
    std::string n = std::to_string(i), callee = "c" + std::to_string(i - 1);
    lines += "c" + n + ":\n i" + n + " = " + (i % 2 ? "fusion" : "call") + " calls=" + callee +
             "," + callee + "\n";
  }
  HloText text(lines);
  std::vector<size_t> order = Module(text.data).usersFirst();
  std::sort(order.begin(), order.end());
  CHECK_EQ(order.size(), size_t(64));
  CHECK(std::adjacent_find(order.begin(), order.end()) == order.end());
}

TEST(hlo_references_to_what_comes_later_are_refused) {
  for (std::string line : {"a = add(a, a)", "a = call calls=main"})
    CHECK_THROWS(Module(HloText("main:\n " + line).data), wire::ModuleError,
                 "refers to an id that the module lacks");
}

TEST(hlo_fusions_need_a_computation_and_its_arguments) {
  const std::pair<std::string, std::string> wrong[] = {
      {"f = fusion(x)", "a call has no callee"},
      {"f = fusion calls=fused", "too few operands or callees"},
  };
  for (const auto &[line, message] : wrong) {
    HloText text("fused:\n p = parameter\n main:\n x = parameter\n " + line);
    CHECK_THROWS(sourceOf(text, "f"), wire::ModuleError, message);
  }
}

TEST(hlo_modules_that_are_cut_off_are_refused) {
  HloText text("main:\n x = parameter[4]\n s = sine[4](x) \"f/sin\"");
  for (size_t size = 0; size < text.data.size(); ++size)
    CHECK_THROWS(Module(text.data.substr(0, size)), wire::ModuleError, "");
}
