// SPDX-License-Identifier: Apache-2.0
//
// What did MLIR and the passes report during a run?
#pragma once

#include "hlotag/ir/location.h"

#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace hlotag::ir {

/// As MLIR numbers them.
enum class Severity { Error, Warning, Note, Remark };

std::string_view toString(Severity severity);

struct Diagnostic {
  Severity severity = Severity::Error;
  std::string file; ///< innermost source file, or empty
  int line = 0;
  int column = 0;
  std::string location; ///< as in messages: `file:line:column` or `"name"`; empty if unknown
  std::string message;
  std::vector<Diagnostic> notes;
};

/// Collects the diagnostics that this thread emits in `context`, instead of printing them.
///
/// MLIR's handlers belong to a context, not to a thread; the newest is called first. This handler
/// passes diagnostics of other threads to the handler before it. Diagnostics of a pass manager's
/// worker threads are collected, because MLIR replays them in order on the calling thread. Scopes
/// on one context nest: the innermost collects.
class DiagnosticScope {
public:
  explicit DiagnosticScope(MlirContext context);
  ~DiagnosticScope();
  DiagnosticScope(const DiagnosticScope &) = delete;
  DiagnosticScope &operator=(const DiagnosticScope &) = delete;

  /// Adds a warning or remark. MLIR's C API emits errors only.
  void add(Diagnostic diagnostic) { diagnostics_.push_back(std::move(diagnostic)); }

  std::vector<Diagnostic> take() { return std::move(diagnostics_); }

private:
  static MlirLogicalResult handle(MlirDiagnostic diagnostic, void *self);

  MlirContext context_;
  std::thread::id owner_;
  MlirDiagnosticHandlerID id_;
  std::vector<Diagnostic> diagnostics_;
};

/// Makes a diagnostic without emitting it.
Diagnostic makeDiagnostic(Severity severity, Location location, std::string message);

} // namespace hlotag::ir
