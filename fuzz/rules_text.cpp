// SPDX-License-Identifier: Apache-2.0
//
// The text of rules, as hlotag-attach takes it: read, or refused with a reason.
#include "check.h"
#include "upstream.h"

#include "analysis/field.h"
#include "analysis/rules.h"

#include <cstddef>
#include <cstdint>

using namespace hlotag;

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  fuzz::installUpstream();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // Attributes live as long as their context.
  static MlirContext context{};
  static int numUses = 0;
  if (numUses++ % 10000 == 0) {
    if (context.ptr)
      fuzz::destroyContext(context);
    context = fuzz::makeContext();
  }
  std::string_view text(reinterpret_cast<const char *>(data), size);
  try {
    for (const analysis::Rule &rule : analysis::parseRules(context, text)) {
      fuzz::require(bool(rule.attrs) && !rule.attrs.empty(), "a rule says what to attach");
      analysis::Paths paths;
      analysis::ScopeMatches scopes(paths);
      analysis::Subject subject{
          "stablehlo.add", scopes, paths.append(0, "a/b"), "/x/model.py", 3, 4, "main", false};
      fuzz::require(!rule.matches(subject) || rule.mayMatch(subject.opName),
                    "the quick test misses nothing");
    }
  } catch (const ir::IRError &error) {
    fuzz::require(error.what()[0] != 0, "an error has a reason");
  }
  return 0;
}
