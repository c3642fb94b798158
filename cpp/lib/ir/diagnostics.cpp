// SPDX-License-Identifier: Apache-2.0
#include "hlotag/ir/diagnostics.h"

namespace hlotag::ir {

namespace {

Diagnostic fromRaw(MlirDiagnostic raw) {
  const capi::Table &fn = capi::fn();
  std::string message;
  fn.mlirDiagnosticPrint(raw, appendToString, &message);
  Diagnostic result = makeDiagnostic(Severity(fn.mlirDiagnosticGetSeverity(raw)),
                                     fn.mlirDiagnosticGetLocation(raw), std::move(message));
  intptr_t numNotes = fn.mlirDiagnosticGetNumNotes(raw);
  for (intptr_t i = 0; i < numNotes; ++i)
    result.notes.push_back(fromRaw(fn.mlirDiagnosticGetNote(raw, i)));
  return result;
}

} // namespace

std::string_view toString(Severity severity) {
  static constexpr std::string_view names[] = {"error", "warning", "note", "remark"};
  return names[size_t(severity)];
}

Diagnostic makeDiagnostic(Severity severity, Location location, std::string message) {
  Diagnostic result;
  result.severity = severity;
  result.message = std::move(message);
  FileLoc file = findFile(location);
  bool isPlace = file ? file.line() > 0 : bool(dynCast<NameLoc>(location));
  if (isPlace)
    result.location = render(location);
  if (file && isPlace) {
    result.file = std::string(file.filename().str());
    result.line = file.line();
    result.column = file.column();
  }
  return result;
}

DiagnosticScope::DiagnosticScope(MlirContext context)
    : context_(context), owner_(std::this_thread::get_id()),
      id_(capi::fn().mlirContextAttachDiagnosticHandler(context, handle, this, nullptr)) {}

DiagnosticScope::~DiagnosticScope() {
  capi::fn().mlirContextDetachDiagnosticHandler(context_, id_);
}

MlirLogicalResult DiagnosticScope::handle(MlirDiagnostic diagnostic, void *self) {
  constexpr MlirLogicalResult handled{1}, passOn{0};
  auto *scope = static_cast<DiagnosticScope *>(self);
  if (scope->owner_ != std::this_thread::get_id())
    return passOn;
  // No exception may enter MLIR. Without memory, the next handler (stderr) may succeed.
  try {
    scope->diagnostics_.push_back(fromRaw(diagnostic));
  } catch (...) {
    return passOn;
  }
  return handled;
}

} // namespace hlotag::ir
