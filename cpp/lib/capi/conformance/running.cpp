// SPDX-License-Identifier: Apache-2.0
//
// Diagnostics and pass managers.
#include "conformance.h"

namespace hlotag::capi {

namespace {

/// The diagnostics that a handler got.
struct Seen {
  int errors = 0, deleted = 0;
  std::string message, notes;
  MlirLocation location{nullptr};
};

} // namespace

void Conformance::diagnostics() {
  Seen seen;
  auto handler = [](MlirDiagnostic diagnostic, void *data) -> MlirLogicalResult {
    auto &seen = *static_cast<Seen *>(data);
    seen.errors += capi::fn().mlirDiagnosticGetSeverity(diagnostic) == MlirDiagnosticError;
    seen.location = capi::fn().mlirDiagnosticGetLocation(diagnostic);
    seen.message.clear();
    capi::fn().mlirDiagnosticPrint(diagnostic, append, &seen.message);
    intptr_t notes = capi::fn().mlirDiagnosticGetNumNotes(diagnostic);
    for (intptr_t i = 0; i < notes; ++i) {
      MlirDiagnostic note = capi::fn().mlirDiagnosticGetNote(diagnostic, i);
      if (capi::fn().mlirDiagnosticGetSeverity(note) == MlirDiagnosticNote)
        capi::fn().mlirDiagnosticPrint(note, append, &seen.notes);
    }
    return {1};
  };
  MlirDiagnosticHandlerID id = fn.mlirContextAttachDiagnosticHandler(
      context, handler, &seen, [](void *data) { ++static_cast<Seen *>(data)->deleted; });
  fn.mlirEmitError(name, "a message");
  expect(seen.errors == 1 && seen.message == "a message" && same(seen.location, name) &&
             seen.notes.empty(),
         "mlirEmitError");
  expect(!fn.mlirAttributeParseGet(context, ref("[1,")).ptr && seen.errors == 2,
         "mlirAttributeParseGet");
  // A definition after its use: an error with a note.
  moveBefore(end, pair);
  expect(!fn.mlirOperationVerify(module) && seen.errors == 3, "mlirOperationVerify");
  expect(seen.notes.find("defined here") != std::string::npos, "mlirDiagnosticGetNote");
  moveBefore(use, pair);
  expect(fn.mlirOperationVerify(module), "mlirOperationVerify");
  fn.mlirContextDetachDiagnosticHandler(context, id);
  expect(seen.deleted == 1, "mlirContextDetachDiagnosticHandler");
}

void Conformance::passes() {
  auto run = [&](MlirOperation on, bool verify) {
    std::string reason;
    MlirPassManager manager = fn.mlirPassManagerCreate(context);
    MlirOpPassManager passes = fn.mlirPassManagerGetAsOpPassManager(manager);
    fn.mlirPassManagerEnableVerifier(manager, verify);
    expect(fn.mlirOpPassManagerAddPipeline(passes, ref("symbol-dce"), append, &reason).value != 0,
           "mlirOpPassManagerAddPipeline");
    bool rejected =
        fn.mlirOpPassManagerAddPipeline(passes, ref("no-such-pass"), append, &reason).value == 0;
    expect(rejected && reason.find("no-such-pass") != std::string::npos,
           "mlirOpPassManagerAddPipeline");
    bool ok = fn.mlirPassManagerRunOnOp(manager, on).value != 0;
    fn.mlirPassManagerDestroy(manager);
    return ok;
  };
  // jaxlib's pass removes the unused private function.
  MlirOperation copy = fn.mlirOperationClone(module);
  bool ok = run(copy, true);
  MlirBlock block = fn.mlirRegionGetFirstBlock(fn.mlirOperationGetRegion(copy, 0));
  bool removed = !fn.mlirOperationGetNextInBlock(fn.mlirBlockGetFirstOperation(block)).ptr;
  expect(ok && removed, "mlirPassManagerRunOnOp");
  fn.mlirOperationDestroy(copy);

  // On an invalid module, with and without the verifier.
  auto swallow = [](MlirDiagnostic, void *) -> MlirLogicalResult { return {1}; };
  MlirDiagnosticHandlerID id =
      fn.mlirContextAttachDiagnosticHandler(context, swallow, nullptr, nullptr);
  moveBefore(end, pair);
  copy = fn.mlirOperationClone(module);
  moveBefore(use, pair);
  expect(run(copy, false) && !run(copy, true), "mlirPassManagerEnableVerifier");
  fn.mlirOperationDestroy(copy);
  fn.mlirContextDetachDiagnosticHandler(context, id);
}

} // namespace hlotag::capi
