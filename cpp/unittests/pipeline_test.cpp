// SPDX-License-Identifier: Apache-2.0
#include "hlotag/pass/pipeline.h"
#include "hlotag/pass/registry.h"
#include "sample_pass.h"
#include "testing.h"

using namespace hlotag::pass;
using hlotag::testing::registerSamplePass;
using hlotag::testing::SamplePass;

namespace {

std::string roundTrip(const std::string &text) {
  registerSamplePass();
  std::string once = Pipeline::parse(text).str();
  CHECK_EQ(Pipeline::parse(once).str(), once);
  return once;
}

const SamplePass &parseSample(Pipeline &pipeline, const std::string &options) {
  registerSamplePass();
  pipeline = Pipeline::parse("hlotag-sample{" + options + "}");
  return static_cast<const SamplePass &>(*pipeline.elements()[0].pass);
}

} // namespace

TEST(empty_pipelines) {
  CHECK_EQ(roundTrip(""), "");
  CHECK_EQ(roundTrip("  \n "), "");
  CHECK_EQ(roundTrip("builtin.module()"), "");
}

TEST(anchor_is_dropped) {
  CHECK_EQ(roundTrip("builtin.module(hlotag-sample,cse)"), "hlotag-sample,cse");
  CHECK_EQ(roundTrip(" builtin.module ( hlotag-sample , cse ) "), "hlotag-sample,cse");
  CHECK_EQ(roundTrip("builtin.module(cse),canonicalize"), "builtin.module(cse),canonicalize");
  // The inner one is for modules within the module.
  CHECK_EQ(roundTrip("builtin.module(builtin.module(cse))"), "builtin.module(builtin.module(cse))");
}

TEST(foreign_text_is_untouched) {
  CHECK_EQ(roundTrip("func.func(cse,canonicalize{max-iterations=2 top-down=false})"),
           "func.func(cse,canonicalize{max-iterations=2 top-down=false})");
  CHECK_EQ(roundTrip("a{b=\"x,)y\"},c"), "a{b=\"x,)y\"},c");
  Pipeline pipeline = Pipeline::parse("func.func(cse),hlotag-sample");
  CHECK(pipeline.hasOpaque());
  CHECK_EQ(pipeline.elements()[0].name(), "func.func");
  CHECK_EQ(pipeline.elements()[1].name(), "hlotag-sample");
}

TEST(options_of_each_type) {
  Pipeline pipeline;
  const SamplePass &pass =
      parseSample(pipeline, "flag limit=-4 ratio=2.5e-1 text=\"a b\" keys=x,y seeds=attached");
  CHECK(pass.flag.get());
  CHECK_EQ(pass.limit.get(), -4);
  CHECK_EQ(pass.ratio.get(), 0.25);
  CHECK_EQ(pass.text.get(), "a b");
  CHECK_EQ(pass.keys->size(), 2u);
  CHECK_EQ(pass.seeds.get(), "attached");
  CHECK_EQ(pipeline.str(), "hlotag-sample{flag=true limit=-4 ratio=0.25 text=\"a b\" keys=x,y "
                           "seeds=attached}");
}

TEST(defaults_are_not_printed) {
  CHECK_EQ(roundTrip("hlotag-sample{limit=3 flag=false ratio=.5}"), "hlotag-sample");
  CHECK_EQ(roundTrip("hlotag-sample{}"), "hlotag-sample");
}

TEST(any_string_round_trips) {
  for (std::string value : {"plain", "a b", "a,b", "{", "}", "\"", "'", "\\", "a\\\"b", "\\\\", "(",
                            "=", " lead", "new\nline", "x='1' y=\"2\"", "C:\\dir\\", "é"}) {
    SamplePass pass;
    pass.text.set(value);
    pass.keys.set({value, "other", value});
    registerSamplePass();
    Pipeline pipeline = Pipeline::parse(pass.str());
    const auto &back = static_cast<const SamplePass &>(*pipeline.elements()[0].pass);
    CHECK_EQ(back.text.get(), value);
    CHECK(back.keys.get() == pass.keys.get());
  }
}

TEST(lists) {
  Pipeline pipeline;
  CHECK_EQ(parseSample(pipeline, "keys=").keys->size(), 0u);
  CHECK_EQ(parseSample(pipeline, "keys={}").keys->size(), 0u);
  CHECK_EQ(parseSample(pipeline, "keys=\"a,b c\"").keys->at(1), "b c");
  CHECK_EQ(parseSample(pipeline, "keys={\"a,b\", c}").keys->at(0), "a,b");
  CHECK_EQ(parseSample(pipeline, "keys='a b',c").keys->at(0), "a b");
}

TEST(malformed_pipelines) {
  registerSamplePass();
  CHECK_THROWS(Pipeline::parse(","), PipelineError, "expected the name of a pass");
  CHECK_THROWS(Pipeline::parse("cse,"), PipelineError, "expected the name of a pass");
  CHECK_THROWS(Pipeline::parse("cse canonicalize"), PipelineError, "expected ','");
  CHECK_THROWS(Pipeline::parse("func.func(cse"), PipelineError, "'(' is not closed");
  CHECK_THROWS(Pipeline::parse("func.func(cse}"), PipelineError, "'}' closes nothing");
  CHECK_THROWS(Pipeline::parse("cse)"), PipelineError, "expected ','");
  CHECK_THROWS(Pipeline::parse("hlotag-sample{text=\"a}"), PipelineError, "quote is not closed");
  CHECK_THROWS(Pipeline::parse("hlotag-sample{limit=1"), PipelineError, "'{' is not closed");
  CHECK_THROWS(Pipeline::parse("hlotag-sample(cse)"), PipelineError, "options are written in");
  CHECK_THROWS(Pipeline::parse("builtin.module(cse"), PipelineError, "'(' is not closed");
}

TEST(errors_show_the_place) {
  registerSamplePass();
  CHECK_THROWS(Pipeline::parse("cse,hlotag-sampel"), PipelineError,
               "at offset 4: unknown pass 'hlotag-sampel'; did you mean hlotag-sample?\n"
               "  cse,hlotag-sampel\n"
               "      ^");
}

TEST(unknown_and_ill_typed_options) {
  registerSamplePass();
  CHECK_THROWS(Pipeline::parse("hlotag-sample{nope=1}"), PipelineError,
               "unknown option 'nope' of hlotag-sample; its options: flag (bool), limit (int), "
               "ratio (float), text (string), keys (list of strings), seeds (all|attached)");
  CHECK_THROWS(Pipeline::parse("hlotag-sample{limit=1.5}"), PipelineError,
               "'1.5' is not a value of type int for the option 'limit' of hlotag-sample; its");
  CHECK_THROWS(Pipeline::parse("hlotag-sample{limit=99999999999999999999}"), PipelineError, "int");
  CHECK_THROWS(Pipeline::parse("hlotag-sample{flag=yes}"), PipelineError, "type bool");
  CHECK_THROWS(Pipeline::parse("hlotag-sample{ratio=x}"), PipelineError, "type float");
  CHECK_THROWS(Pipeline::parse("hlotag-sample{seeds=some}"), PipelineError, "type all|attached");
  CHECK_THROWS(Pipeline::parse("hlotag-sample{text}"), PipelineError, "needs a value");
  CHECK_THROWS(Pipeline::parse("hlotag-sample{keys=a,,b}"), PipelineError, "list of strings");
  CHECK_THROWS(Pipeline::parse("hlotag-sample{=1}"), PipelineError, "name of an option");
}

TEST(our_passes_are_not_nested) {
  registerSamplePass();
  CHECK_THROWS(Pipeline::parse("func.func(cse, hlotag-sample)"), PipelineError,
               "not nested in another operation");
  CHECK_EQ(roundTrip("func.func(x{a=hlotag-sample})"), "func.func(x{a=hlotag-sample})");
}

TEST(globs) {
  CHECK(hlotag::ir::globMatch("*", ""));
  CHECK(hlotag::ir::globMatch("a*c", "abbc"));
  CHECK(hlotag::ir::globMatch("a?c", "abc"));
  CHECK(hlotag::ir::globMatch("*a*b*", "xxaxxbxx"));
  CHECK(!hlotag::ir::globMatch("a*c", "abcd"));
  CHECK(!hlotag::ir::globMatch("?", ""));
  CHECK(!hlotag::ir::globMatch("a", "A"));
}

TEST(nearest_names) {
  std::vector<std::string> names = {"hlotag-attach", "hlotag-strip", "hlotag-resolve"};
  CHECK_EQ(nearest("hlotag-atach", names)[0], "hlotag-attach");
  CHECK(nearest("something-else-entirely", names).empty());
}
