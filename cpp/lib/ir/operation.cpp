// SPDX-License-Identifier: Apache-2.0
#include "hlotag/ir/operation.h"

namespace hlotag::ir {

std::string Operation::str(bool debugInfo) const {
  const capi::Table &fn = capi::fn();
  MlirOpPrintingFlags flags = fn.mlirOpPrintingFlagsCreate();
  if (debugInfo)
    fn.mlirOpPrintingFlagsEnableDebugInfo(flags, /*enable=*/true, /*prettyForm=*/false);
  std::string text;
  fn.mlirOperationPrintWithFlags(raw_, flags, appendToString, &text);
  fn.mlirOpPrintingFlagsDestroy(flags);
  return text;
}

} // namespace hlotag::ir
