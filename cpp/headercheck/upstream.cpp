// SPDX-License-Identifier: Apache-2.0
//
// Compares our declarations of MLIR's C API with upstream's headers. There is nothing to run: this
// file compiles, or an assertion names what differs.

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ours {
#include "hlotag/capi/types.h"
}

#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <mlir-c/Diagnostics.h>
#include <mlir-c/IR.h>
#include <mlir-c/Pass.h>
#include <mlir-c/Support.h>

// Every prototype, written with upstream's types.
#define HLOTAG_REQUIRED(ret, name, args)                                                           \
  static_assert(std::is_same_v<decltype(&::name), ret(*) args>, #name " differs upstream");
#include "hlotag/capi/functions.def"

// Every type those prototypes mention.
#define SAME_LAYOUT(type)                                                                          \
  static_assert(sizeof(ours::type) == sizeof(::type) && alignof(ours::type) == alignof(::type) &&  \
                    std::is_trivially_copyable_v<ours::type> ==                                    \
                        std::is_trivially_copyable_v<::type>,                                      \
                #type " differs upstream")
#define SAME_FIELD(type, field)                                                                    \
  static_assert(offsetof(ours::type, field) == offsetof(::type, field) &&                          \
                    sizeof(ours::type::field) == sizeof(::type::field),                            \
                #type "::" #field " differs upstream")
#define SAME_VALUE(name)                                                                           \
  static_assert(static_cast<int>(ours::name) == static_cast<int>(::name), #name " differs "        \
                                                                                "upstream")

SAME_LAYOUT(MlirContext);
SAME_LAYOUT(MlirOperation);
SAME_LAYOUT(MlirOpOperand);
SAME_LAYOUT(MlirOpPrintingFlags);
SAME_LAYOUT(MlirBlock);
SAME_LAYOUT(MlirRegion);
SAME_LAYOUT(MlirAttribute);
SAME_LAYOUT(MlirIdentifier);
SAME_LAYOUT(MlirLocation);
SAME_LAYOUT(MlirType);
SAME_LAYOUT(MlirValue);
SAME_LAYOUT(MlirDiagnostic);
SAME_LAYOUT(MlirPassManager);
SAME_LAYOUT(MlirOpPassManager);
SAME_LAYOUT(MlirDiagnosticSeverity);
SAME_LAYOUT(MlirDiagnosticHandlerID);
SAME_LAYOUT(MlirDiagnosticHandler);
SAME_LAYOUT(MlirStringCallback);

SAME_LAYOUT(MlirStringRef);
SAME_FIELD(MlirStringRef, data);
SAME_FIELD(MlirStringRef, length);

SAME_LAYOUT(MlirLogicalResult);
SAME_FIELD(MlirLogicalResult, value);

SAME_LAYOUT(MlirNamedAttribute);
SAME_FIELD(MlirNamedAttribute, name);
SAME_FIELD(MlirNamedAttribute, attribute);

SAME_VALUE(MlirDiagnosticError);
SAME_VALUE(MlirDiagnosticWarning);
SAME_VALUE(MlirDiagnosticNote);
SAME_VALUE(MlirDiagnosticRemark);
