// SPDX-License-Identifier: Apache-2.0
//
// Pipeline text and options: what parses prints to text that parses to the same.
#include "check.h"
#include "sample_pass.h"

#include "hlotag/pass/pipeline.h"
#include "hlotag/passes/passes.h"

#include <cmath>
#include <cstddef>
#include <cstdint>

using namespace hlotag;
using namespace hlotag::pass;
using hlotag::testing::SamplePass;

namespace {

void checkSame(const Pass &one, const Pass &other) {
  fuzz::require(one.info().argument == other.info().argument, "the same pass");
  for (size_t i = 0; i < one.options().size(); ++i)
    fuzz::require(one.options()[i]->print() == other.options()[i]->print(),
                  "options keep their values", one.options()[i]->print());
  auto *a = dynamic_cast<const SamplePass *>(&one);
  auto *b = dynamic_cast<const SamplePass *>(&other);
  if (!a)
    return;
  fuzz::require(*a->text == *b->text && *a->keys == *b->keys && *a->limit == *b->limit,
                "values survive printing");
  fuzz::require(*a->ratio == *b->ratio || std::isnan(*a->ratio), "numbers survive printing");
}

} // namespace

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  passes::registerAllPasses();
  testing::registerSamplePass();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  try {
    Pipeline once = Pipeline::parse(text);
    std::string printed = once.str();
    Pipeline twice = Pipeline::parse(printed);
    fuzz::require(twice.str() == printed, "printing is stable", printed);
    fuzz::require(once.elements().size() == twice.elements().size(), "as many passes", printed);
    for (size_t i = 0; i < once.elements().size(); ++i)
      if (once.elements()[i].pass)
        checkSame(*once.elements()[i].pass, *twice.elements()[i].pass);
  } catch (const PipelineError &error) {
    fuzz::require(error.what()[0] != 0, "an error has a reason");
  }
  return 0;
}
