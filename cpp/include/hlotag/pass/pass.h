// SPDX-License-Identifier: Apache-2.0
//
// What is a pass, and what does it see of a run? `passes/strip.cpp` is a short one.
#pragma once

#include "hlotag/analysis/call_graph.h"
#include "hlotag/ir/ir.h"
#include "hlotag/pass/option.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace hlotag::pass {

/// The names of a pass. The texts must be string literals. The description is Markdown, in
/// `python/hlotag/passes/descriptions/`.
struct PassInfo {
  std::string_view argument; ///< `hlotag-strip`
  std::string_view name;     ///< `HlotagStrip`
  std::string_view summary;  ///< one line, no full stop
};

/// Returns why a value is illegal for a key; empty if it is legal.
using ValueCheck = std::function<std::string(std::string_view key, std::string_view value)>;

/// The module of one run. Passes change it through `rewriter()` or `tags()` only.
class PassContext {
public:
  PassContext(ir::Operation module, ir::DiagnosticScope &diagnostics, ValueCheck whyIllegal = {});

  ir::Operation module() const { return module_; }
  MlirContext context() const { return rewriter_.context(); }
  ir::Rewriter &rewriter() { return rewriter_; }
  ir::TagWriter &tags() { return tags_; }
  const ir::OpIds &ids() const { return ids_; }

  /// The module and its operations. Valid until an operation is inserted or moved.
  const ir::OpList &operations();
  /// Which functions call which. Valid as long as `operations()`.
  const analysis::CallGraph &calls();

  /// Reports an error through MLIR, which makes the pass fail.
  void emitError(ir::Location location, const std::string &message);
  void emitError(ir::Operation op, const std::string &message) {
    emitError(op.location(), message);
  }
  void emitWarning(ir::Operation op, const std::string &message);
  void emitRemark(ir::Operation op, const std::string &message);
  size_t numErrors() const { return numErrors_; }

  /// Asks the caller of the pipeline why a value is illegal for a key; empty if it is legal.
  std::string whyIllegal(std::string_view key, std::string_view value) const {
    return whyIllegal_ ? whyIllegal_(key, value) : std::string();
  }

private:
  ir::Operation module_;
  ir::DiagnosticScope &diagnostics_;
  ValueCheck whyIllegal_;
  ir::Rewriter rewriter_;
  ir::TagWriter tags_;
  ir::OpIds ids_;
  std::optional<ir::OpList> operations_;
  std::optional<analysis::CallGraph> calls_; // of `operations_`
  size_t insertionsAtList_ = 0;              // the rewriter's count when `operations_` was made
  size_t numErrors_ = 0;
};

/// A pass over a whole module. Its only state between runs is its options.
class Pass {
public:
  virtual ~Pass() = default;
  Pass(const Pass &) = delete;
  Pass &operator=(const Pass &) = delete;

  const PassInfo &info() const { return info_; }
  /// Fails if it reports an error or throws.
  virtual void run(PassContext &ctx) = 0;

  const OptionList &options() const { return options_; }
  OptionBase *findOption(std::string_view name) const;

protected:
  explicit Pass(const PassInfo &info) : info_(info) {}
  OptionList &options() { return options_; }

private:
  PassInfo info_;
  OptionList options_;
};

} // namespace hlotag::pass
