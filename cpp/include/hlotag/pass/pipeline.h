// SPDX-License-Identifier: Apache-2.0
//
// Pipeline text in MLIR's syntax.
#pragma once

#include "hlotag/pass/pass.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace hlotag::pass {

/// The text is no pipeline. what() says why and shows the place with a caret.
class PipelineError : public std::runtime_error {
public:
  /// `offset` is into `text`.
  PipelineError(const std::string &reason, std::string_view text, size_t offset);
  explicit PipelineError(const std::string &reason) : std::runtime_error(reason) {}
};

/// A pass of ours, or the text of something that MLIR's own registry knows.
struct PipelineElement {
  std::unique_ptr<Pass> pass;
  std::string foreign; ///< when `pass` is null, e.g. `func.func(cse)`

  /// Its name in messages and flags: `hlotag-strip`, `canonicalize`, `func.func`.
  std::string name() const;
  /// Whether it changes the module behind the rewriter's back.
  bool isOpaque() const { return !pass || !pass->keepsJournal(); }
  std::string str() const { return pass ? pass->str() : foreign; }
};

class Pipeline {
public:
  /// Parses `a,b{x=1},func.func(c)`, with or without `builtin.module(...)` around it. Names that
  /// start with `hlotag-` or are registered are ours and have their options parsed; all else is
  /// foreign and left to MLIR. Throws PipelineError.
  static Pipeline parse(std::string_view text);

  const std::vector<PipelineElement> &elements() const { return elements_; }
  bool hasOpaque() const;
  /// Canonical text, without `builtin.module(...)` around it; parses to the same pipeline.
  std::string str() const;

private:
  std::vector<PipelineElement> elements_;
};

} // namespace hlotag::pass
