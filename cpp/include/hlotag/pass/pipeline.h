// SPDX-License-Identifier: Apache-2.0
//
// Which passes does a pipeline text name? The syntax is MLIR's.
#pragma once

#include "hlotag/pass/pass.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace hlotag::pass {

/// The text is not a pipeline. what() says why and points at the place with a caret.
class PipelineError : public std::runtime_error {
public:
  /// `offset` is into `text`.
  PipelineError(const std::string &reason, std::string_view text, size_t offset);
  explicit PipelineError(const std::string &reason) : std::runtime_error(reason) {}
};

/// A pass of ours, or the text of an element for MLIR's own registry.
struct PipelineElement {
  std::unique_ptr<Pass> pass;
  std::string foreign; ///< when `pass` is null, e.g. `func.func(cse)`

  /// The name in messages and flags: `hlotag-strip`, `canonicalize`, `func.func`.
  std::string name() const;
  /// Whether it may change the module without the rewriter.
  bool isOpaque() const { return !pass || !pass->keepsJournal(); }
  std::string str() const { return pass ? pass->str() : foreign; }
};

class Pipeline {
public:
  /// Parses `a,b{x=1},func.func(c)`, with or without `builtin.module(...)` around it. A name is
  /// ours if it starts with `hlotag-` or is registered; MLIR parses all others. Throws
  /// PipelineError.
  static Pipeline parse(std::string_view text);

  const std::vector<PipelineElement> &elements() const { return elements_; }
  bool hasOpaque() const;
  /// Canonical text without `builtin.module(...)`; parses to the same pipeline.
  std::string str() const;

private:
  std::vector<PipelineElement> elements_;
};

} // namespace hlotag::pass
