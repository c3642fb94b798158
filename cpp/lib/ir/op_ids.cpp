// SPDX-License-Identifier: Apache-2.0
#include "hlotag/ir/op_ids.h"
#include "hlotag/ir/keys.h"

namespace hlotag::ir {

OpIds::OpIds(MlirContext context) {
  auto get = [&](std::string_view text) { return Identifier::get(context, text); };
  module = get("builtin.module");
  func = get("func.func");
  funcReturn = get("func.return");
  funcCall = get("func.call");
  stablehloReturn = get("stablehlo.return");
  sdyReturn = get("sdy.return");
  sdyMesh = get("sdy.mesh");
  constant = get("stablehlo.constant");
  whileOp = get("stablehlo.while");
  caseOp = get("stablehlo.case");
  ifOp = get("stablehlo.if");
  composite = get("stablehlo.composite");
  customCall = get("stablehlo.custom_call");
  symName = get("sym_name");
  callee = get("callee");
  decomposition = get("decomposition");
  calledComputations = get("called_computations");
  frontendAttributes = get(kFrontendAttributes);
  attached = get(kAttached);
  tags = get("hlotag.tags");
}

} // namespace hlotag::ir
