// SPDX-License-Identifier: Apache-2.0
//
// Diagnostics and pass managers.
#include "session.h"

#include <cstring>
#include <memory>

namespace hlotag::bindings {

namespace {

intptr_t count(nb::handle sequence) { return intptr_t(nb::len(sequence)); }

/// The Python diagnostic. Its owner keeps it while a handler runs.
nb::handle objectOf(MlirDiagnostic handle) { return {static_cast<PyObject *>(handle.ptr)}; }

MlirDiagnostic handleOf(nb::handle diagnostic) { return {diagnostic.ptr()}; }

struct Handler {
  nb::object registration;
  MlirDiagnosticHandler function;
  void *userData;
  void (*deleteUserData)(void *);
};

/// An external pass. Unlike MLIR's manager, this host never clones it.
struct ExternalPass {
  MlirExternalPassCallbacks callbacks;
  void *userData;
  bool failed = false;

  ~ExternalPass() { callbacks.destruct(userData); }

  bool run(MlirOperation op) {
    failed =
        callbacks.initialize && !callbacks.initialize(mlirOperationGetContext(op), userData).value;
    if (!failed)
      callbacks.run(op, {this}, userData);
    return !failed;
  }
};

/// A pass of ours, or a manager of jaxlib's with passes of its own.
struct Stage {
  std::unique_ptr<ExternalPass> external;
  nb::object manager;
};

struct Manager {
  bool verify = true;
  std::vector<Stage> stages;

  bool run(MlirOperation op) {
    for (Stage &stage : stages)
      if (!(stage.external ? runExternal(*stage.external, op) : runForeign(stage.manager, op)))
        return false;
    return true;
  }

private:
  bool runExternal(ExternalPass &pass, MlirOperation op) {
    return pass.run(op) && (!verify || mlirOperationVerify(op));
  }

  bool runForeign(nb::object manager, MlirOperation op) {
    manager.attr("enable_verifier")(verify);
    ErrorsAreEmitted errors;
    bool ok = succeeds([&] { manager.attr("run")(session().object(op)); });
    forgetStructure();
    return ok;
  }
};

Manager &managerOf(const void *handle) {
  return *static_cast<Manager *>(const_cast<void *>(handle));
}

} // namespace

void mlirEmitError(MlirLocation location, const char *message) {
  nb::object text = nb::steal(PyUnicode_DecodeUTF8(
      message, static_cast<Py_ssize_t>(std::strlen(message)), "backslashreplace"));
  session().object(location).attr("emit_error")(text);
}

MlirDiagnosticHandlerID mlirContextAttachDiagnosticHandler(MlirContext,
                                                           MlirDiagnosticHandler function,
                                                           void *userData,
                                                           void (*deleteUserData)(void *)) {
  auto *handler = new Handler{{}, function, userData, deleteUserData};
  handler->registration = session().context().attr("attach_diagnostic_handler")(
      nb::cpp_function([handler](nb::handle diagnostic) {
        return handler->function(handleOf(diagnostic), handler->userData).value != 0;
      }));
  return reinterpret_cast<MlirDiagnosticHandlerID>(handler);
}

void mlirContextDetachDiagnosticHandler(MlirContext, MlirDiagnosticHandlerID id) {
  std::unique_ptr<Handler> handler(reinterpret_cast<Handler *>(id));
  runNoexcept("mlirContextDetachDiagnosticHandler",
              [&] { handler->registration.attr("detach")(); });
  if (handler->deleteUserData)
    handler->deleteUserData(handler->userData);
}

void mlirDiagnosticPrint(MlirDiagnostic diagnostic, MlirStringCallback callback, void *userData) {
  auto text = nb::cast<std::string>(objectOf(diagnostic).attr("message"));
  callback({text.data(), text.size()}, userData);
}

MlirLocation mlirDiagnosticGetLocation(MlirDiagnostic diagnostic) {
  return session().location(objectOf(diagnostic).attr("location"));
}

MlirDiagnosticSeverity mlirDiagnosticGetSeverity(MlirDiagnostic diagnostic) {
  auto name = nb::cast<std::string>(objectOf(diagnostic).attr("severity").attr("name"));
  return name == "WARNING"  ? MlirDiagnosticWarning
         : name == "NOTE"   ? MlirDiagnosticNote
         : name == "REMARK" ? MlirDiagnosticRemark
                            : MlirDiagnosticError;
}

intptr_t mlirDiagnosticGetNumNotes(MlirDiagnostic diagnostic) {
  return count(objectOf(diagnostic).attr("notes"));
}

MlirDiagnostic mlirDiagnosticGetNote(MlirDiagnostic diagnostic, intptr_t index) {
  // The diagnostic keeps its notes.
  return handleOf(nb::object(objectOf(diagnostic).attr("notes")[index]));
}

// This host never reads TypeIDs. They live as long as the process, as MLIR requires.
MlirTypeIDAllocator mlirTypeIDAllocatorCreate() {
  static char allocator;
  return {&allocator};
}

MlirTypeID mlirTypeIDAllocatorAllocateTypeID(MlirTypeIDAllocator) { return {new char()}; }

MlirPass mlirCreateExternalPass(MlirTypeID, MlirStringRef, MlirStringRef, MlirStringRef,
                                MlirStringRef, intptr_t, MlirDialectHandle *,
                                MlirExternalPassCallbacks callbacks, void *userData) {
  callbacks.construct(userData);
  return {new ExternalPass{callbacks, userData}};
}

void mlirExternalPassSignalFailure(MlirExternalPass pass) {
  static_cast<ExternalPass *>(pass.ptr)->failed = true;
}

MlirPassManager mlirPassManagerCreate(MlirContext) { return {new Manager()}; }

void mlirPassManagerDestroy(MlirPassManager manager) { delete &managerOf(manager.ptr); }

void mlirPassManagerEnableVerifier(MlirPassManager manager, bool enable) {
  managerOf(manager.ptr).verify = enable;
}

MlirOpPassManager mlirPassManagerGetAsOpPassManager(MlirPassManager manager) {
  return {manager.ptr};
}

void mlirPassManagerAddOwnedPass(MlirPassManager manager, MlirPass pass) {
  managerOf(manager.ptr)
      .stages.push_back({std::unique_ptr<ExternalPass>(static_cast<ExternalPass *>(pass.ptr)), {}});
}

MlirLogicalResult mlirOpPassManagerAddPipeline(MlirOpPassManager manager, MlirStringRef text,
                                               MlirStringCallback callback, void *userData) {
  nb::object passes = classes().PassManager("any", session().context());
  try {
    passes.attr("add")(toStr(text));
  } catch (nb::python_error &error) {
    if (!error.matches(PyExc_ValueError))
      throw;
    auto reason = nb::cast<std::string>(nb::str(error.value()));
    callback({reason.data(), reason.size()}, userData);
    return {0};
  }
  managerOf(manager.ptr).stages.push_back({nullptr, passes});
  return {1};
}

MlirLogicalResult mlirPassManagerRunOnOp(MlirPassManager manager, MlirOperation op) {
  return {managerOf(manager.ptr).run(op)};
}

} // namespace hlotag::bindings
