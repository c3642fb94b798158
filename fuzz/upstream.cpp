// SPDX-License-Identifier: Apache-2.0
#include "upstream.h"

#include "check.h"
#include "hlotag/capi/table.h"

#include <map>
#include <string>

struct MlirOpPrintingFlags {
  void *ptr;
};
struct MlirDialectHandle {
  const void *ptr;
};

// The functions of the table, with hlotag's own types.
extern "C" {
#define HLOTAG_REQUIRED(ret, name, args) ret name args;
#include "hlotag/capi/functions.def"

MlirContext mlirContextCreateWithThreading(bool);
void mlirContextDestroy(MlirContext);
void mlirContextSetAllowUnregisteredDialects(MlirContext, bool);
MlirDialectHandle mlirGetDialectHandle__func__(void);
void mlirDialectHandleRegisterDialect(MlirDialectHandle, MlirContext);
MlirOperation mlirOperationCreateParse(MlirContext, MlirStringRef, MlirStringRef);
MlirOpPrintingFlags mlirOpPrintingFlagsCreate(void);
void mlirOpPrintingFlagsDestroy(MlirOpPrintingFlags);
void mlirOpPrintingFlagsEnableDebugInfo(MlirOpPrintingFlags, bool, bool);
void mlirOpPrintingFlagsPrintGenericOpForm(MlirOpPrintingFlags);
void mlirOperationPrintWithFlags(MlirOperation, MlirOpPrintingFlags, MlirStringCallback, void *);
}

namespace hlotag::fuzz {

void installUpstream() {
  static const std::map<std::string_view, void *> functions{
#define HLOTAG_REQUIRED(ret, name, args) {#name, reinterpret_cast<void *>(&::name)},
#include "hlotag/capi/functions.def"
  };
  auto missing = capi::install([](std::string_view name) { return functions.at(name); });
  require(missing.empty(), "upstream has all functions");
}

MlirContext makeContext() {
  MlirContext context = mlirContextCreateWithThreading(false);
  mlirContextSetAllowUnregisteredDialects(context, true);
  mlirDialectHandleRegisterDialect(mlirGetDialectHandle__func__(), context);
  if (!std::getenv("HLOTAG_FUZZ_PRINT"))
    mlirContextAttachDiagnosticHandler(
        context, [](MlirDiagnostic, void *) { return MlirLogicalResult{1}; }, nullptr, nullptr);
  return context;
}

void destroyContext(MlirContext context) { mlirContextDestroy(context); }

MlirOperation parseModule(MlirContext context, std::string_view text) {
  std::string terminated(text); // the parser wants a zero at the end
  return mlirOperationCreateParse(context, {terminated.data(), terminated.size()}, {"-", 1});
}

void destroyModule(MlirOperation module) { mlirOperationDestroy(module); }

std::string print(MlirOperation op) {
  std::string text;
  MlirOpPrintingFlags flags = mlirOpPrintingFlagsCreate();
  mlirOpPrintingFlagsEnableDebugInfo(flags, true, false);
  mlirOpPrintingFlagsPrintGenericOpForm(flags);
  mlirOperationPrintWithFlags(
      op, flags,
      [](MlirStringRef part, void *out) {
        static_cast<std::string *>(out)->append(part.data, part.length);
      },
      &text);
  mlirOpPrintingFlagsDestroy(flags);
  return text;
}

} // namespace hlotag::fuzz
