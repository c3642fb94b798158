// SPDX-License-Identifier: Apache-2.0
#include "hlotag/ir/support.h"
#include "hlotag/passes/passes.h"
#include "testing.h"

using namespace hlotag;

TEST(passes_have_the_values_that_were_given) {
  auto pass = passes::makePass("hlotag-propagate", {{"max-clones", int64_t{3}}});
  CHECK(pass->findOption("max-clones")->value() == pass::OptionValue(int64_t{3}));
  pass = passes::makePass("hlotag-finalize");
  CHECK(pass->findOption("on-mistake")->value() == pass::OptionValue(std::string("error")));
}

TEST(values_of_another_type_are_refused) {
  using passes::makePass;
  CHECK_THROWS(makePass("hlotag-absent"), std::invalid_argument, "unknown pass");
  CHECK_THROWS(makePass("hlotag-finalize", {{"on-mistake", std::string("some")}}),
               std::invalid_argument, "no option 'on-mistake' of this type");
  CHECK_THROWS(makePass("hlotag-propagate", {{"max-clones", std::string("1")}}),
               std::invalid_argument, "max-clones");
  CHECK_THROWS(makePass("hlotag-finalize", {{"nope", int64_t{1}}}), std::invalid_argument, "nope");
}

TEST(values_are_read_from_texts) {
  pass::OptionList owner;
  pass::Option<int64_t> number{owner, "number", "an int", 3};
  pass::Option<std::vector<std::string>> keys{owner, "keys", "a list"};
  CHECK(number.setTexts({"-7"}));
  CHECK_EQ(*number, -7);
  CHECK(!number.setTexts({"1.5"}));
  CHECK(!number.setTexts({}));
  CHECK(keys.setTexts({"", "a,b"}));
  CHECK(*keys == (std::vector<std::string>{"", "a,b"}));
}

TEST(globs) {
  using hlotag::ir::globMatch;
  CHECK(globMatch("*", ""));
  CHECK(globMatch("a*c", "abbc"));
  CHECK(globMatch("a?c", "abc"));
  CHECK(globMatch("*a*b*", "xxaxxbxx"));
  CHECK(!globMatch("a*c", "abcd"));
  CHECK(!globMatch("?", ""));
  CHECK(!globMatch("a", "A"));
}
