// SPDX-License-Identifier: Apache-2.0
//
// Running a pipeline on a module, inside MLIR's own pass manager.
#pragma once

#include "hlotag/ir/diagnostics.h"
#include "hlotag/pass/pipeline.h"

#include <string>
#include <vector>

namespace hlotag::pass {

struct RunOptions {
  /// Verify the module after passes that changed it: after a row of our passes (after each one
  /// when something is printed or timed), and after each foreign one.
  bool verify = true;
  /// Print the module to stderr before or after these passes; "all" means each.
  std::vector<std::string> printBefore;
  std::vector<std::string> printAfter;
  /// Print after each pass that changed the module.
  bool printAfterChange = false;
  /// Print the module as it was when a pass failed.
  bool printAfterFailure = false;
  /// Record in `hlotag.origins` where the entries come from that our passes add.
  bool debugOrigins = false;
  /// Print a table of wall times to stderr.
  bool timing = false;

  // How modules are printed.
  bool printModuleScope = false; ///< name the operation in the header, as MLIR does
  bool printDebugInfo = false;
  bool printLocalScope = false;
  bool printGeneric = false;

  bool prints() const {
    return !printBefore.empty() || !printAfter.empty() || printAfterChange || printAfterFailure;
  }
};

struct RunResult {
  bool ok = true;
  std::string failingPass; ///< empty when ok
  std::vector<ir::Diagnostic> diagnostics;
  /// Our passes that changed something; others only with `printAfterChange`.
  std::vector<std::string> changedPasses;
  size_t numChanges = 0; ///< changes by our passes
};

/// Runs `pipeline` on `module`, a builtin.module. When a pass or the verifier fails the module is
/// as it was before, and the result says what failed. Throws PipelineError when MLIR rejects a
/// foreign element (before anything ran), std::invalid_argument when `module` is no module.
RunResult run(ir::Operation module, const Pipeline &pipeline, const RunOptions &options = {});

} // namespace hlotag::pass
