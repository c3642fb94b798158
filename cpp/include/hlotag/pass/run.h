// SPDX-License-Identifier: Apache-2.0
//
// How does a pipeline run on a module, and what did the run do?
#pragma once

#include "hlotag/ir/diagnostics.h"
#include "hlotag/pass/pipeline.h"
#include "hlotag/pass/run_options.h"

#include <string>
#include <vector>

namespace hlotag::pass {

struct RunResult {
  bool ok = true;
  std::string failingPass; ///< empty when ok
  std::vector<ir::Diagnostic> diagnostics;
  /// Passes of ours that changed the module; with `printAfterChange` those of others too.
  std::vector<std::string> changedPasses;
  size_t numChanges = 0; ///< by our passes
};

/// Runs `pipeline` on `module`, a builtin.module; foreign passes in MLIR's own pass manager. If a
/// pass or the verifier fails, the module has its own operations again and the result names the
/// pass.
///
/// Opaque elements run on a copy of the operations. `spare`, an empty module, then has those that
/// the module lost: its own, or the copy if a pass failed. It must live as long as references to
/// any of them.
///
/// Throws PipelineError if MLIR rejects a foreign element, before any pass runs;
/// std::invalid_argument if `module` is another operation, or there are opaque elements and no
/// `spare`.
RunResult run(ir::Operation module, const Pipeline &pipeline, const RunOptions &options = {},
              ir::Operation spare = {});

} // namespace hlotag::pass
