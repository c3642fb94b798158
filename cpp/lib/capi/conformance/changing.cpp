// SPDX-License-Identifier: Apache-2.0
//
// Functions that change and create operations.
#include "conformance.h"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>

namespace hlotag::capi {

namespace {

std::string print(MlirOperation op) {
  std::string text;
  MlirOpPrintingFlags flags = fn().mlirOpPrintingFlagsCreate();
  fn().mlirOpPrintingFlagsEnableDebugInfo(flags, true, false);
  fn().mlirOperationPrintWithFlags(op, flags, append, &text);
  fn().mlirOpPrintingFlagsDestroy(flags);
  return text;
}

/// An argument of `mlirOperationCreate`, which frees it.
template <class T> T *allocate(std::initializer_list<T> items) {
  auto *copy = static_cast<T *>(std::malloc(items.size() * sizeof(T)));
  std::copy(items.begin(), items.end(), copy);
  return copy;
}

} // namespace

void Conformance::changes() {
  const std::string before = print(module);
  MlirLocation unknown = fn.mlirLocationUnknownGet(context);
  fn.mlirOperationSetLocation(pair, unknown);
  expect(same(fn.mlirOperationGetLocation(pair), unknown), "mlirOperationSetLocation");
  fn.mlirOperationSetLocation(pair, call);

  MlirValue arg1 = fn.mlirBlockGetArgument(body, 1);
  fn.mlirBlockArgumentSetLocation(arg1, unknown);
  expect(same(fn.mlirValueGetLocation(arg1), unknown), "mlirBlockArgumentSetLocation");
  fn.mlirBlockArgumentSetLocation(arg1, name);

  fn.mlirOperationSetAttributeByName(pair, ref("k"), attr("probe.unit"));
  expect(same(fn.mlirOperationGetAttributeByName(pair, ref("k")), attr("probe.unit")),
         "mlirOperationSetAttributeByName");
  expect(fn.mlirOperationRemoveAttributeByName(pair, ref("k")) &&
             !fn.mlirOperationRemoveAttributeByName(pair, ref("k")) &&
             !fn.mlirOperationGetAttributeByName(pair, ref("k")).ptr,
         "mlirOperationRemoveAttributeByName");
  fn.mlirOperationSetAttributeByName(pair, ref("k"), fn.mlirStringAttrGet(context, ref("v")));

  MlirValue result = fn.mlirOperationGetResult(pair, 1);
  fn.mlirOperationSetOperand(inner, 0, fn.mlirBlockGetArgument(body, 0));
  expect(countUses(result) == 3 &&
             same(fn.mlirOperationGetOperand(inner, 0), fn.mlirBlockGetArgument(body, 0)),
         "mlirOperationSetOperand");
  fn.mlirOperationSetOperand(inner, 0, result);

  fn.mlirOperationRemoveFromParent(pair);
  expect(!fn.mlirOperationGetBlock(pair).ptr && same(fn.mlirBlockGetFirstOperation(body), use) &&
             nameOf(pair) == "probe.pair",
         "mlirOperationRemoveFromParent");
  fn.mlirBlockInsertOwnedOperationBefore(body, use, pair);
  expect(same(fn.mlirOperationGetNextInBlock(pair), use), "mlirBlockInsertOwnedOperationBefore");

  MlirValue arg0 = fn.mlirBlockGetArgument(body, 0);
  MlirOperation copy = fn.mlirOperationClone(pair);
  expect(!same(copy, pair) && nameOf(copy) == "probe.pair" && countUses(arg0) == 2 &&
             !fn.mlirOperationGetBlock(copy).ptr,
         "mlirOperationClone");
  fn.mlirOperationDestroy(copy);
  expect(countUses(arg0) == 1, "mlirOperationDestroy");
  expect(fn.mlirOperationVerify(module), "mlirOperationVerify");
  expect(print(module) == before, "mlirOperationPrintWithFlags");
}

void Conformance::creation() {
  const std::string before = print(module);
  MlirType type = fn.mlirValueGetType(fn.mlirBlockGetArgument(body, 0));
  MlirRegion region = fn.mlirRegionCreate();
  MlirBlock block = fn.mlirBlockCreate(1, &type, &name);
  fn.mlirRegionAppendOwnedBlock(region, block);
  expect(same(fn.mlirRegionGetFirstBlock(region), block), "mlirRegionAppendOwnedBlock");
  expect(fn.mlirBlockGetNumArguments(block) == 1, "mlirBlockCreate");

  MlirOperationState state{};
  state.name = ref("probe.made");
  state.location = call;
  state.nResults = 1;
  state.results = allocate({type});
  state.nOperands = 1;
  state.operands = allocate({fn.mlirBlockGetArgument(body, 0)});
  state.nRegions = 1;
  state.regions = allocate({region});
  state.nAttributes = 1;
  state.attributes = allocate<MlirNamedAttribute>(
      {{fn.mlirIdentifierGet(context, ref("probe.a")), attr("probe.unit")}});
  MlirOperation made = fn.mlirOperationCreate(&state);
  expect(nameOf(made) == "probe.made" && fn.mlirOperationGetNumRegions(made) == 1 &&
             same(fn.mlirOperationGetLocation(made), call) &&
             same(fn.mlirOperationGetAttributeByName(made, ref("probe.a")), attr("probe.unit")),
         "mlirOperationCreate");
  fn.mlirBlockInsertOwnedOperationBefore(body, use, made);
  MlirRegion holder = fn.mlirOperationGetRegion(made, 0);
  expect(same(fn.mlirRegionGetFirstBlock(holder), block), "mlirOperationCreate");
  expect(same(fn.mlirBlockGetParentOperation(block), made), "mlirBlockGetParentOperation");
  MlirOperation inside = fn.mlirOperationClone(inner);
  fn.mlirBlockInsertOwnedOperationBefore(block, {nullptr}, inside);
  expect(same(fn.mlirBlockGetFirstOperation(block), inside), "mlirBlockInsertOwnedOperationBefore");

  fn.mlirBlockDetach(block);
  expect(!fn.mlirRegionGetFirstBlock(holder).ptr, "mlirBlockDetach");
  fn.mlirRegionAppendOwnedBlock(holder, block);
  expect(same(fn.mlirRegionGetFirstBlock(holder), block), "mlirRegionAppendOwnedBlock");
  fn.mlirOperationRemoveFromParent(made);
  fn.mlirOperationDestroy(made);
  expect(print(module) == before, "mlirOperationDestroy");
}

} // namespace hlotag::capi
