// SPDX-License-Identifier: Apache-2.0
//
// Collecting what MLIR reports.
#pragma once

#include "hlotag/ir/location.h"

#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace hlotag::ir {

enum class Severity { Error, Warning, Remark, Note };

std::string_view toString(Severity severity);

struct Diagnostic {
  Severity severity = Severity::Error;
  std::string file; ///< innermost source file, or empty
  int line = 0;
  int column = 0;
  std::string location; ///< for people: `file:line:column`, `"name"` or `<unknown>`
  std::string message;
  std::vector<Diagnostic> notes;

  /// `location: severity: message`, and the notes each on a line of its own.
  std::string str() const;
};

/// While it lives, what is reported in `context` *by this thread* is collected here and not
/// printed.
///
/// MLIR keeps handlers per context, newest first, not per thread. A report from another thread
/// (someone else who uses the same context) is therefore handed on to the handler that was there
/// before. What a pass manager's own workers report comes to this thread in order, since MLIR
/// replays it there. Scopes on one context nest: the innermost collects.
class DiagnosticScope {
public:
  explicit DiagnosticScope(MlirContext context);
  ~DiagnosticScope();
  DiagnosticScope(const DiagnosticScope &) = delete;
  DiagnosticScope &operator=(const DiagnosticScope &) = delete;

  /// Adds one that MLIR's C API cannot emit (it has errors only).
  void add(Diagnostic diagnostic) { diagnostics_.push_back(std::move(diagnostic)); }

  bool hasErrors() const;
  const std::vector<Diagnostic> &diagnostics() const { return diagnostics_; }
  std::vector<Diagnostic> take() { return std::move(diagnostics_); }

private:
  static MlirLogicalResult handle(MlirDiagnostic diagnostic, void *self);

  MlirContext context_;
  std::thread::id owner_;
  MlirDiagnosticHandlerID id_;
  std::vector<Diagnostic> diagnostics_;
};

/// A diagnostic of ours at `location`, not emitted anywhere.
Diagnostic makeDiagnostic(Severity severity, Location location, std::string message);

} // namespace hlotag::ir
