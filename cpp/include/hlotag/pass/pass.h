// SPDX-License-Identifier: Apache-2.0
//
// What a pass is. A pass class looks like this:
//
//     class Strip final : public PassBase<Strip> {
//     public:
//       static const PassInfo &staticInfo();
//       LogicalResult run(PassContext &ctx) override;
//     private:
//       Option<int64_t> limit{options(), "limit", "how many at most", 3};
//     };
#pragma once

#include "hlotag/ir/ir.h"
#include "hlotag/pass/option.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hlotag::pass {

struct [[nodiscard]] LogicalResult {
  bool ok;
};
inline LogicalResult success() { return {true}; }
inline LogicalResult failure() { return {false}; }
inline bool succeeded(LogicalResult result) { return result.ok; }
inline bool failed(LogicalResult result) { return !result.ok; }

/// All that is said about a pass: feeds `--help`, `list_passes()` and the generated documentation.
/// The texts must be string literals.
struct PassInfo {
  std::string_view argument;    ///< `hlotag-strip`
  std::string_view name;        ///< `HlotagStrip`
  std::string_view summary;     ///< one line, no full stop
  std::string_view description; ///< Markdown, with the IR before and after
};

/// What a pass works on, valid during one run. All changes go through `rewriter()` or `tags()`.
class PassContext {
public:
  PassContext(ir::Operation module, ir::DiagnosticScope &diagnostics);

  ir::Operation module() const { return module_; }
  MlirContext context() const { return rewriter_.context(); }
  ir::Rewriter &rewriter() { return rewriter_; }
  ir::TagWriter &tags() { return tags_; }
  const ir::OpIds &ids() const { return ids_; }

  /// The module and all in it. Valid until operations come, move or go.
  const ir::OpList &operations();
  /// Something other than the rewriter changed the module: what was done so far can no longer be
  /// taken back, and what was known is to be looked up again.
  void startOver();

  /// Reports through MLIR, and makes the pass fail even if it then returns success.
  LogicalResult emitError(ir::Location location, const std::string &message);
  LogicalResult emitError(ir::Operation op, const std::string &message) {
    return emitError(op.location(), message);
  }
  void emitWarning(ir::Location location, const std::string &message);
  void emitWarning(ir::Operation op, const std::string &message) {
    emitWarning(op.location(), message);
  }
  void emitRemark(ir::Location location, const std::string &message);
  void emitRemark(ir::Operation op, const std::string &message) {
    emitRemark(op.location(), message);
  }
  /// Passes on what a guest reported.
  void report(ir::Diagnostic diagnostic);
  size_t numErrors() const { return numErrors_; }

private:
  ir::Operation module_;
  ir::DiagnosticScope &diagnostics_;
  ir::Rewriter rewriter_;
  ir::TagWriter tags_;
  ir::OpIds ids_;
  std::optional<ir::OpList> operations_;
  size_t movesAtList_ = 0; // the rewriter's count when the list was made
  size_t numErrors_ = 0;
};

/// A pass over a whole module. Keeps nothing between runs but its options.
class Pass {
public:
  virtual ~Pass() = default;
  Pass(const Pass &) = delete;
  Pass &operator=(const Pass &) = delete;

  virtual const PassInfo &info() const = 0;
  virtual LogicalResult run(PassContext &ctx) = 0;
  virtual std::unique_ptr<Pass> clone() const = 0;
  /// Whether all that it changes goes through the context's rewriter, and can be taken back there.
  virtual bool keepsJournal() const { return true; }

  const OptionList &options() const { return options_; }
  OptionBase *findOption(std::string_view name) const;
  /// `name{option=value ...}` with the options that are not at their default.
  std::string str() const;

protected:
  Pass() = default;
  OptionList &options() { return options_; }
  void copyOptionsFrom(const Pass &other);

private:
  OptionList options_;
};

/// Supplies the boilerplate; `Derived` has a default constructor and `staticInfo()`.
template <class Derived> class PassBase : public Pass {
public:
  const PassInfo &info() const final { return Derived::staticInfo(); }
  std::unique_ptr<Pass> clone() const final {
    auto copy = std::make_unique<Derived>();
    static_cast<PassBase &>(*copy).copyOptionsFrom(*this);
    return copy;
  }
};

} // namespace hlotag::pass
