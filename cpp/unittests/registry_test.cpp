// SPDX-License-Identifier: Apache-2.0
#include "hlotag/ir/support.h"
#include "hlotag/pass/pipeline.h"
#include "hlotag/pass/registry.h"
#include "testing.h"

using namespace hlotag::pass;

namespace {

class Sample final : public PassBase<Sample> {
public:
  static const PassInfo &staticInfo() {
    static const PassInfo info{"hlotag-sample", "HlotagSample", "A pass for tests", ""};
    return info;
  }
  LogicalResult run(PassContext &) override { return success(); }

  Option<int64_t> limit{options(), "limit", "an int", 3};
  Option<double> ratio{options(), "ratio", "a float", 0.5};
  Option<std::vector<std::string>> keys{options(), "keys", "a list"};
  Option<std::string> seeds{options(), "seeds", "a choice", "all", {"all", "attached"}};
};

} // namespace

TEST(elements_have_the_values_that_were_given) {
  registerPass([] { return std::make_unique<Sample>(); });
  PipelineElement element = makeElement("hlotag-sample", {{"seeds", std::string("attached")}});
  const auto &pass = static_cast<const Sample &>(*element.pass);
  CHECK_EQ(*pass.seeds, "attached");
  CHECK_EQ(*pass.limit, 3);
}

TEST(values_of_another_type_are_refused) {
  registerPass([] { return std::make_unique<Sample>(); });
  CHECK_THROWS(makeElement("hlotag-absent"), PipelineError, "unknown pass");
  CHECK_THROWS(makeElement("hlotag-sample", {{"seeds", std::string("some")}}), PipelineError,
               "no option 'seeds' of this type");
  CHECK_THROWS(makeElement("hlotag-sample", {{"limit", 1.0}}), PipelineError, "limit");
  CHECK_THROWS(makeElement("hlotag-sample", {{"nope", true}}), PipelineError, "nope");
}

TEST(values_survive_as_texts) {
  Sample one, other;
  CHECK(one.limit.set(int64_t{-7}) && one.ratio.set(0.1));
  CHECK(one.keys.set(std::vector<std::string>{"", "a,b"}));
  for (OptionBase *option : std::as_const(one).options())
    CHECK(other.findOption(option->name())->setTexts(toTexts(option->value())));
  for (OptionBase *option : std::as_const(one).options())
    CHECK(other.findOption(option->name())->value() == option->value());
  CHECK(!other.limit.setTexts({"1.5"}));
  CHECK(!other.limit.setTexts({}));
  CHECK(!other.ratio.setTexts({"x"}));
}

TEST(a_factory_may_look_up_passes) {
  registerPass([] { return std::make_unique<Sample>(); });
  registerNew({{"hlotag-other", [] { return lookup("hlotag-sample"); }}});
  CHECK(lookup("hlotag-other") != nullptr);
  CHECK(!allPasses().empty());
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
