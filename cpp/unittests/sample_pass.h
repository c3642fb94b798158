// SPDX-License-Identifier: Apache-2.0
//
// Which pass do unit tests and fuzzers name in pipelines?
#pragma once

#include "hlotag/pass/registry.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hlotag::testing {

/// Has an option of each type, and does nothing.
class SamplePass final : public pass::PassBase<SamplePass> {
public:
  static const pass::PassInfo &staticInfo() {
    static const pass::PassInfo info{"hlotag-sample", "HlotagSample", "A pass for tests", ""};
    return info;
  }
  pass::LogicalResult run(pass::PassContext &) override { return pass::success(); }

  pass::Option<bool> flag{options(), "flag", "a bool"};
  pass::Option<int64_t> limit{options(), "limit", "an int", 3};
  pass::Option<double> ratio{options(), "ratio", "a float", 0.5};
  pass::Option<std::string> text{options(), "text", "a string"};
  pass::Option<std::vector<std::string>> keys{options(), "keys", "a list"};
  pass::Option<std::string> seeds{options(), "seeds", "a choice", "all", {"all", "attached"}};
};

inline void registerSamplePass() {
  pass::registerPass([] { return std::make_unique<SamplePass>(); });
}

} // namespace hlotag::testing
