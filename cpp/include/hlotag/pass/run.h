// SPDX-License-Identifier: Apache-2.0
//
// How do passes run on a module, and what did the run do?
#pragma once

#include "hlotag/ir/diagnostics.h"
#include "hlotag/pass/pass.h"

#include <memory>
#include <string>
#include <vector>

namespace hlotag::pass {

using Pipeline = std::vector<std::unique_ptr<Pass>>;

struct RunOptions {
  /// Verify what the passes changed.
  bool verify = true;
  /// Record the origin of each entry that the passes add, in `hlotag.origins`.
  bool debugOrigins = false;
  /// Leave the module as a failing pass left it.
  bool keepFailed = false;
  /// What messages and origins call the text that the module was read from.
  std::string source = "-";
  /// Says why a value is illegal for a key, or nothing; null if all are legal.
  ValueCheck whyIllegal;
};

struct RunResult {
  bool ok = true;
  std::string failingPass; ///< empty when ok
  std::vector<ir::Diagnostic> diagnostics;
  size_t numChanges = 0;
};

/// Runs `pipeline` on `module`, a builtin.module. If a pass or the verifier fails, the module is
/// unchanged and the result names the pass. Throws std::invalid_argument for another operation.
RunResult run(ir::Operation module, const Pipeline &pipeline, const RunOptions &options = {});

} // namespace hlotag::pass
