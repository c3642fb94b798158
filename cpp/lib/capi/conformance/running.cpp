// SPDX-License-Identifier: Apache-2.0
//
// Diagnostics, passes and pass managers.
#include "conformance.h"

namespace hlotag::capi {

namespace {

/// The diagnostics that a handler got.
struct Seen {
  int errors = 0, deleted = 0;
  std::string message, notes;
  MlirLocation location{nullptr};
};

/// The calls that an external pass got.
struct Runs {
  int constructed = 0, destroyed = 0, runs = 0;
  bool fail = false;
  MlirOperation op{nullptr};
};

bool runPass(MlirOperation module, Runs &runs, bool verify) {
  const Table &fn = capi::fn();
  static MlirTypeID id = fn.mlirTypeIDAllocatorAllocateTypeID(fn.mlirTypeIDAllocatorCreate());
  MlirExternalPassCallbacks callbacks{};
  callbacks.construct = [](void *data) { ++static_cast<Runs *>(data)->constructed; };
  callbacks.destruct = [](void *data) { ++static_cast<Runs *>(data)->destroyed; };
  callbacks.clone = [](void *data) { return data; };
  callbacks.run = [](MlirOperation op, MlirExternalPass pass, void *data) {
    auto &runs = *static_cast<Runs *>(data);
    ++runs.runs;
    runs.op = op;
    if (runs.fail)
      capi::fn().mlirExternalPassSignalFailure(pass);
  };
  MlirPassManager manager = fn.mlirPassManagerCreate(fn.mlirOperationGetContext(module));
  fn.mlirPassManagerEnableVerifier(manager, verify);
  fn.mlirPassManagerAddOwnedPass(
      manager, fn.mlirCreateExternalPass(id, ref("Probe"), ref("probe"), ref("a pass"),
                                         ref("builtin.module"), 0, nullptr, callbacks, &runs));
  bool ok = fn.mlirPassManagerRunOnOp(manager, module).value != 0;
  fn.mlirPassManagerDestroy(manager);
  return ok;
}

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
  fn.mlirOperationMoveAfter(pair, use);
  expect(!fn.mlirOperationVerify(module) && seen.errors == 3, "mlirOperationVerify");
  expect(seen.notes.find("defined here") != std::string::npos, "mlirDiagnosticGetNote");
  fn.mlirOperationMoveAfter(use, pair);
  expect(fn.mlirOperationVerify(module), "mlirOperationVerify");
  fn.mlirContextDetachDiagnosticHandler(context, id);
  expect(seen.deleted == 1, "mlirContextDetachDiagnosticHandler");
}

void Conformance::passes() {
  MlirTypeIDAllocator allocator = fn.mlirTypeIDAllocatorCreate();
  expect(fn.mlirTypeIDAllocatorAllocateTypeID(allocator).ptr !=
             fn.mlirTypeIDAllocatorAllocateTypeID(allocator).ptr,
         "mlirTypeIDAllocatorAllocateTypeID");

  Runs good;
  expect(runPass(module, good, true) && good.runs == 1 && same(good.op, module),
         "mlirPassManagerRunOnOp");
  expect(good.constructed > 0 && good.constructed <= good.destroyed, "mlirPassManagerDestroy");
  Runs bad;
  bad.fail = true;
  expect(!runPass(module, bad, true) && bad.runs == 1, "mlirExternalPassSignalFailure");

  // On an invalid module, with and without the verifier.
  Seen seen;
  auto swallow = [](MlirDiagnostic, void *) -> MlirLogicalResult { return {1}; };
  MlirDiagnosticHandlerID id =
      fn.mlirContextAttachDiagnosticHandler(context, swallow, &seen, nullptr);
  fn.mlirOperationMoveAfter(pair, use);
  Runs unchecked, checked;
  expect(runPass(module, unchecked, false), "mlirPassManagerEnableVerifier");
  expect(!runPass(module, checked, true), "mlirPassManagerEnableVerifier");
  fn.mlirOperationMoveAfter(use, pair);
  fn.mlirContextDetachDiagnosticHandler(context, id);

  std::string reason;
  MlirPassManager manager = fn.mlirPassManagerCreate(context);
  MlirOpPassManager passes = fn.mlirPassManagerGetAsOpPassManager(manager);
  expect(fn.mlirOpPassManagerAddPipeline(passes, ref("symbol-dce"), append, &reason).value != 0,
         "mlirOpPassManagerAddPipeline");
  bool accepted =
      fn.mlirOpPassManagerAddPipeline(passes, ref("no-such-pass"), append, &reason).value != 0;
  expect(!accepted && reason.find("no-such-pass") != std::string::npos,
         "mlirOpPassManagerAddPipeline");
  fn.mlirPassManagerDestroy(manager);

  // jaxlib's pass removes the unused private function.
  MlirOperation copy = fn.mlirOperationClone(module);
  manager = fn.mlirPassManagerCreate(context);
  (void)fn.mlirOpPassManagerAddPipeline(fn.mlirPassManagerGetAsOpPassManager(manager),
                                        ref("symbol-dce"), append, &reason);
  bool ran = fn.mlirPassManagerRunOnOp(manager, copy).value != 0;
  fn.mlirPassManagerDestroy(manager);
  MlirBlock block = fn.mlirRegionGetFirstBlock(fn.mlirOperationGetRegion(copy, 0));
  bool removed = !fn.mlirOperationGetNextInBlock(fn.mlirBlockGetFirstOperation(block)).ptr;
  expect(ran && removed, "mlirPassManagerGetAsOpPassManager");
  fn.mlirOperationDestroy(copy);
}

} // namespace hlotag::capi
