// SPDX-License-Identifier: Apache-2.0
//
// Diagnostics and pass managers.
#include "session.h"

#include <cstring>
#include <memory>

namespace hlotag::bindings {

namespace {

/// The Python diagnostic. Its owner keeps it while a handler runs.
nb::handle objectOf(MlirDiagnostic handle) { return {static_cast<PyObject *>(handle.ptr)}; }

MlirDiagnostic handleOf(nb::handle diagnostic) { return {diagnostic.ptr()}; }

struct Handler {
  nb::object registration;
  MlirDiagnosticHandler function;
  void *userData;
  void (*deleteUserData)(void *);
};

nb::handle managerOf(const void *handle) {
  return static_cast<PyObject *>(const_cast<void *>(handle));
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

MlirPassManager mlirPassManagerCreate(MlirContext) {
  return {classes().PassManager("any", session().context()).release().ptr()};
}

void mlirPassManagerDestroy(MlirPassManager manager) { managerOf(manager.ptr).dec_ref(); }

void mlirPassManagerEnableVerifier(MlirPassManager manager, bool enable) {
  managerOf(manager.ptr).attr("enable_verifier")(enable);
}

MlirOpPassManager mlirPassManagerGetAsOpPassManager(MlirPassManager manager) {
  return {manager.ptr};
}

MlirLogicalResult mlirOpPassManagerAddPipeline(MlirOpPassManager manager, MlirStringRef text,
                                               MlirStringCallback callback, void *userData) {
  try {
    managerOf(manager.ptr).attr("add")(toStr(text));
  } catch (nb::python_error &error) {
    if (!error.matches(PyExc_ValueError))
      throw;
    auto reason = nb::cast<std::string>(nb::str(error.value()));
    callback({reason.data(), reason.size()}, userData);
    return {0};
  }
  return {1};
}

MlirLogicalResult mlirPassManagerRunOnOp(MlirPassManager manager, MlirOperation op) {
  ErrorsAreEmitted errors;
  bool ok = succeeds([&] { managerOf(manager.ptr).attr("run")(session().object(op)); });
  forgetStructure();
  return {ok};
}

} // namespace hlotag::bindings
