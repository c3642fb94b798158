// SPDX-License-Identifier: Apache-2.0
//
// Which passes run one after another? Python reads the text of a pipeline.
#pragma once

#include "hlotag/pass/pass.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hlotag::pass {

/// A pipeline cannot be made or run.
class PipelineError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// A pass of ours, or the text of an element for MLIR's own registry.
struct PipelineElement {
  std::unique_ptr<Pass> pass;
  std::string foreign; ///< when `pass` is null, e.g. `func.func(cse)`

  /// The name in messages and flags: `hlotag-strip`, `canonicalize`, `func.func`.
  std::string name() const {
    return pass ? std::string(pass->info().argument)
                : foreign.substr(0, foreign.find_first_of("({ \t\r\n"));
  }
  /// Whether it may change the module without the rewriter.
  bool isOpaque() const { return !pass || !pass->keepsJournal(); }
};

using Pipeline = std::vector<PipelineElement>;
using OptionValues = std::vector<std::pair<std::string, OptionValue>>;

/// Makes an element of a pass of ours. Throws PipelineError if there is no such pass or option, or
/// if a value is of another type.
PipelineElement makeElement(std::string_view argument, const OptionValues &options = {});

} // namespace hlotag::pass
