// SPDX-License-Identifier: Apache-2.0
//
// Which types of MLIR's C API does hlotag use? Declared here with upstream's names and layouts, so
// that building needs no MLIR headers.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct MlirStringRef {
  const char *data;
  size_t length;
};
struct MlirLogicalResult {
  int8_t value;
};
using MlirStringCallback = void (*)(MlirStringRef, void *);

#define HLOTAG_CAPI_STRUCT(name, storage)                                                          \
  struct name {                                                                                    \
    storage *ptr;                                                                                  \
  }

HLOTAG_CAPI_STRUCT(MlirContext, void);
HLOTAG_CAPI_STRUCT(MlirOperation, void);
HLOTAG_CAPI_STRUCT(MlirOpOperand, void);
HLOTAG_CAPI_STRUCT(MlirBlock, void);
HLOTAG_CAPI_STRUCT(MlirRegion, void);
HLOTAG_CAPI_STRUCT(MlirAttribute, const void);
HLOTAG_CAPI_STRUCT(MlirIdentifier, const void);
HLOTAG_CAPI_STRUCT(MlirLocation, const void);
HLOTAG_CAPI_STRUCT(MlirType, const void);
HLOTAG_CAPI_STRUCT(MlirValue, const void);
HLOTAG_CAPI_STRUCT(MlirDiagnostic, void);

#undef HLOTAG_CAPI_STRUCT

struct MlirNamedAttribute {
  MlirIdentifier name;
  MlirAttribute attribute;
};

enum MlirDiagnosticSeverity {
  MlirDiagnosticError,
  MlirDiagnosticWarning,
  MlirDiagnosticNote,
  MlirDiagnosticRemark
};
using MlirDiagnosticHandlerID = uint64_t;
using MlirDiagnosticHandler = MlirLogicalResult (*)(MlirDiagnostic, void *userData);

} // extern "C"
