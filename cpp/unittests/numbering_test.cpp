// SPDX-License-Identifier: Apache-2.0
#include "hlotag/hlo/numbering.h"
#include "testing.h"

#include <stdexcept>
#include <tuple>
#include <utility>

using namespace hlotag::hlo;

namespace {

constexpr std::string_view kToken = "ab";

/// The number at the start of an operation's name.
std::string number(int64_t n) { return "\1ab:" + std::to_string(n) + "\1/"; }

template <class Numbers> std::string join(const Numbers &numbers) {
  std::string text;
  for (int64_t n : numbers)
    text.append(text.empty() ? "" : " ").append(std::to_string(n));
  return text;
}
std::string numbers(const std::string &name) { return join(readNumbers(name, kToken).numbers); }
std::string callers(const std::string &name) { return join(readNumbers(name, kToken).callers); }
std::string plain(const std::string &name, bool isOnePlace = false) {
  return removeNumbers(name, kToken, isOnePlace);
}

} // namespace

TEST(numbering_of_one_operation) {
  std::string name = number(12) + "jit(f)/mul";
  CHECK_EQ(numbers(name), "12");
  CHECK_EQ(callers(name), "");
  CHECK_EQ(plain(name), "jit(f)/mul");
}

TEST(numbering_ignores_other_names) {
  for (std::string name : {"", "jit(f)/mul", "\1cd:3\1/jit(f)/mul", "\1ab:3/mul", "\1ab:\1/mul",
                           "\1ab:x\1/mul", "\1ab:3\1mul"}) {
    CHECK_EQ(numbers(name), "");
    CHECK_EQ(plain(name), name);
  }
}

TEST(numbering_of_merged_operations) {
  std::string name =
      number(3) + "jit(f)/mul;" + number(4) + "jit(f)/add;" + number(3) + "jit(f)/mul";
  CHECK_EQ(numbers(name), "3 4");
  CHECK_EQ(plain(name), "jit(f)/mul;jit(f)/add;jit(f)/mul");
  // Without numbers, operations at one place have one name, and XLA writes it once.
  std::string same = number(3) + "jit(f)/mul;" + number(4) + "jit(f)/mul";
  CHECK_EQ(plain(same, /*isOnePlace=*/true), "jit(f)/mul");
  CHECK_EQ(plain(same, /*isOnePlace=*/false), "jit(f)/mul;jit(f)/mul");
  CHECK_EQ(plain(name, /*isOnePlace=*/true), "jit(f)/mul;jit(f)/add;jit(f)/mul");
  CHECK_EQ(numbers(number(3) + "jit(f)/mul;XLA's own;" + number(4) + "jit(f)/add"), "3 4");
}

TEST(numbering_of_combined_collectives) {
  std::string name = "(" + number(3) + "jit(f)/a/psum:" + number(4) + "jit(f)/a/pmax)";
  CHECK_EQ(numbers(name), "3 4");
  CHECK_EQ(plain(name), "jit(f)/a/(psum:pmax)");
  std::string equal = "(" + number(3) + "jit(f)/psum:" + number(4) + "jit(f)/psum)";
  CHECK_EQ(plain(equal), "jit(f)/psum");
}

TEST(numbering_of_inlined_functions) {
  std::string name = number(1) + "jit(f)/jit(g)/" + number(5) + "mul";
  CHECK_EQ(plain(name), "jit(f)/jit(g)/mul");
  // XLA leaves out the caller's name where the callee's begins with it.
  CHECK_EQ(plain(number(1) + "jit(f)/jit(g)/" + number(5) + "jit(f)/jit(g)/mul"),
           "jit(f)/jit(g)/mul");
  // Operations of loops and branches have the whole path from the program's function.
  CHECK_EQ(plain(number(1) + "jit(f)/a/" + number(2) + "b/" + number(5) + "jit(f)/a/b/mul"),
           "jit(f)/a/b/mul");
  // With a second operation, the last number of each path is that of the operation.
  std::string merged = name + ";" + number(2) + "jit(f)/jit(g)/" + number(5) + "mul";
  CHECK_EQ(numbers(merged), "5");
  CHECK_EQ(callers(merged), "1 2");
  CHECK_EQ(plain(merged, /*isOnePlace=*/true), "jit(f)/jit(g)/mul");
}

TEST(numbering_of_names_as_xla_writes_them) {
  const std::pair<std::string, std::string> plainOf[] = {
      {"#/jit(f)/#/sin", "jit(f)/sin"},
      // Callers are not repeated before a name that begins with theirs, as that of a loop's body.
      {"#/jit(f)/#/while/#/jit(f)/#/while/body/sin", "jit(f)/while/body/sin"},
      {"#/jit(f)/while/#/jit(f)/while/body/while/#/jit(f)/while/body/while",
       "jit(f)/while/body/while"},
      // Functions are inlined from the inside out.
      {"#/jit(f)/jit(g)/#/vmap(jit(h))/#/vmap(jit(h))", "jit(f)/jit(g)/vmap(jit(h))"},
      {"#/jit(f)/#/sin;#/jit(f)/#/cos", "jit(f)/sin;jit(f)/cos"},
      // Combined collectives.
      {"#/jit(f)/(#/psum:#/psum)", "jit(f)/psum"},
      {"(#/jit(f)/a/psum:#/jit(f)/b/psum:#/jit(f)/a/psum)", "jit(f)/(a/psum:b/psum:a/psum)"},
      {"(#/jit(f)/#/a/psum:#/jit(f)/#/ab/c/psum)", "jit(f)/(a/psum:ab/c/psum)"},
      {"(#/f:#/g)", "(f:g)"},
      // A user's scopes.
      {"#/jit(f)/\1cd:1\1//sin", "jit(f)/\1cd:1\1//sin"},
      {"#/jit(f)/(\1a:\1b)", "jit(f)/(\1a:\1b)"},
  };
  for (auto [numbered, expected] : plainOf) {
    for (size_t at; (at = numbered.find('#')) != numbered.npos;)
      numbered.replace(at, 1, "\1ab:1\1");
    CHECK_EQ(plain(numbered), expected);
  }
}

TEST(numbering_of_callers_in_parts) {
  const std::tuple<std::string, std::string, std::string> read[] = {
      {number(2) + "f/(" + number(1) + "psum:" + number(0) + "psum)", "1 0", "2 2"},
      {"(" + number(2) + "a/" + number(1) + "psum:" + number(3) + "b/" + number(0) + "psum)", "1 0",
       "2 3"},
      {"(" + number(2) + "psum;" + number(1) + "psum:" + number(0) + "psum)", "2 1 0", ""},
  };
  for (const auto &[name, own, calling] : read) {
    CHECK_EQ(numbers(name), own);
    CHECK_EQ(callers(name), calling);
  }
}

TEST(numbering_refuses_numbers_out_of_range) {
  CHECK_THROWS(numbers("\1ab:99999999999999999999\1/mul"), std::out_of_range, "");
}

TEST(numbering_of_deep_names_ends) {
  std::string name = number(3) + "mul";
  for (int depth = 0; depth < 5000; ++depth)
    name = "(" + name + ":" + number(4) + "add)";
  CHECK(numbers(name) != "");
  CHECK(!plain(name).empty());
}
