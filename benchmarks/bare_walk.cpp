// SPDX-License-Identifier: Apache-2.0
//
// The floor that the passes are measured against: one walk that sets one attribute on every StableHLO operation, through the
// same table of functions and with nothing else.
#include "hlotag/capi/table.h"

#include <cstring>

namespace {

struct Walk {
  const hlotag::capi::Table &capi;
  MlirStringRef name;
  MlirAttribute value;
  long numOperations = 0;

  void visit(MlirOperation op) {
    ++numOperations;
    MlirStringRef kind = capi.mlirIdentifierStr(capi.mlirOperationGetName(op));
    if (kind.length > 10 && std::memcmp(kind.data, "stablehlo.", 10) == 0)
      capi.mlirOperationSetAttributeByName(op, name, value);
    for (intptr_t i = 0, n = capi.mlirOperationGetNumRegions(op); i < n; ++i) {
      MlirRegion region = capi.mlirOperationGetRegion(op, i);
      for (MlirBlock block = capi.mlirRegionGetFirstBlock(region); block.ptr; block = capi.mlirBlockGetNextInRegion(block))
        for (MlirOperation child = capi.mlirBlockGetFirstOperation(block); child.ptr; child = capi.mlirOperationGetNextInBlock(child))
          visit(child);
    }
  }
};

MlirStringRef ref(const char *text) { return {text, std::strlen(text)}; }

} // namespace

extern "C" __attribute__((visibility("default"))) long bare_walk(const void *table, void *operation) {
  const auto &capi = *static_cast<const hlotag::capi::Table *>(table);
  MlirOperation op{operation};
  Walk walk{capi, ref("hlotag_bench"), capi.mlirStringAttrGet(capi.mlirOperationGetContext(op), ref("v"))};
  walk.visit(op);
  return walk.numOperations;
}
