// SPDX-License-Identifier: Apache-2.0
//
// How are modules and times printed to stderr during a run?
#pragma once

#include "hlotag/pass/pipeline.h"
#include "hlotag/pass/run_options.h"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace hlotag::pass {

/// Prints modules according to RunOptions, under MLIR's headers. MLIR's own IR printing is not
/// used, because the signature of its C function differs between builds.
class IRPrinter {
public:
  IRPrinter(ir::Operation module, const RunOptions &options) : module_(module), options_(options) {}

  void before(const PipelineElement &element) const;
  void after(const PipelineElement &element, bool changed) const;
  void afterFailure(const PipelineElement &element) const;

  /// Text of the module with locations. Differs after a foreign pass changed the module.
  std::string fingerprint() const { return module_.str(/*debugInfo=*/true); }

private:
  void print(const char *when, const PipelineElement &element, const char *outcome) const;

  ir::Operation module_;
  const RunOptions &options_;
};

/// Wall times, in the order of their first appearance.
class TimingReport {
public:
  using Clock = std::chrono::steady_clock;
  void add(const std::string &name, Clock::duration time) { rows_.emplace_back(name, time); }
  /// Adds the difference between `total` and the rows so far.
  void addRest(const std::string &name, Clock::duration total);
  void print() const;

private:
  std::vector<std::pair<std::string, Clock::duration>> rows_;
};

} // namespace hlotag::pass
