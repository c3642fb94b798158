// SPDX-License-Identifier: Apache-2.0
#include "hlotag/capi/conformance.h"
#include "conformance.h"

namespace hlotag::capi {

const char *const conformanceModule = R"mlir(
#file = loc("probe.py":3:7)
#name = loc("inner"(#file))
#call = loc(callsite(#name at #file))
#fused = loc(fused<"metadata">[#file, #name])
module attributes {probe.dict = {a = "x", b = unit, c = true}, probe.flag = true, probe.list = [7 : i32, "second"],
                   probe.symbol = @f, probe.text = "some text", probe.unit} {
  func.func @f(%arg0: i32 loc(#file), %arg1: f32 loc(#name)) -> i32 {
    %0:2 = "probe.pair"(%arg1, %arg0) {k = "v"} : (f32, i32) -> (f32, i32) loc(#call)
    "probe.use"(%0#1, %0#1) ({
    ^bb0:
      "probe.inner"(%0#1) : (i32) -> () loc(#name)
    ^bb1:
      "probe.second"() : () -> () loc(#file)
    }, {}) : (i32, i32) -> () loc(#fused)
    return %0#1 : i32 loc(#file)
  } loc(#file)
  func.func private @g() loc(#file)
} loc(#file)
)mlir";

std::vector<std::string> Conformance::run() {
  // In this order: each part uses functions that earlier parts have checked.
  for (auto part :
       {&Conformance::operations, &Conformance::attributeKinds, &Conformance::attributes,
        &Conformance::dictionaries, &Conformance::types, &Conformance::locations,
        &Conformance::values, &Conformance::printing, &Conformance::changes, &Conformance::creation,
        &Conformance::diagnostics, &Conformance::passes}) {
    (this->*part)();
    if (!wrong.empty())
      break;
  }
  return wrong;
}

int Conformance::countUses(MlirValue value) {
  int count = 0;
  for (MlirOpOperand use = fn.mlirValueGetFirstUse(value); use.ptr && count < 100;
       use = fn.mlirOpOperandGetNextUse(use))
    ++count;
  return count;
}

std::vector<std::string> findWrong(MlirOperation module) { return Conformance(module).run(); }

} // namespace hlotag::capi
