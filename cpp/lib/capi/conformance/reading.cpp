// SPDX-License-Identifier: Apache-2.0
//
// Functions that read a module, and those that make attributes and locations to compare.
#include "conformance.h"

namespace hlotag::capi {

void Conformance::operations() {
  context = fn.mlirOperationGetContext(module);
  expect(context.ptr && context.ptr != module.ptr, "mlirOperationGetContext");
  expect(
      same(fn.mlirIdentifierGet(context, ref("builtin.module")), fn.mlirOperationGetName(module)) &&
          nameOf(module) == "builtin.module",
      "mlirIdentifierGet");
  expect(fn.mlirOperationGetNumRegions(module) == 1, "mlirOperationGetNumRegions");
  MlirRegion region = fn.mlirOperationGetRegion(module, 0);
  MlirBlock block = fn.mlirRegionGetFirstBlock(region);
  expect(same(fn.mlirBlockGetParentOperation(block), module), "mlirBlockGetParentOperation");
  expect(fn.mlirBlockGetNextInRegion(block).ptr == nullptr, "mlirBlockGetNextInRegion");
  expect(fn.mlirBlockGetTerminator(block).ptr == nullptr, "mlirBlockGetTerminator");
  f = fn.mlirBlockGetFirstOperation(block);
  expect(nameOf(f) == "func.func", "mlirBlockGetFirstOperation");
  expect(same(fn.mlirOperationGetBlock(f), block), "mlirOperationGetBlock");
  expect(same(fn.mlirOperationGetParentOperation(f), module), "mlirOperationGetParentOperation");
  expect(!fn.mlirOperationGetParentOperation(module).ptr, "mlirOperationGetParentOperation");
  MlirOperation g = fn.mlirOperationGetNextInBlock(f);
  expect(!same(f, g) && nameOf(g) == "func.func", "mlirOperationGetNextInBlock");
  expect(!fn.mlirOperationGetNextInBlock(g).ptr, "mlirOperationGetNextInBlock");
  expect(fn.mlirOperationIsBeforeInBlock(f, g) && !fn.mlirOperationIsBeforeInBlock(g, f),
         "mlirOperationIsBeforeInBlock");
  expect(!fn.mlirRegionGetFirstBlock(fn.mlirOperationGetRegion(g, 0)).ptr,
         "mlirRegionGetFirstBlock");

  body = fn.mlirRegionGetFirstBlock(fn.mlirOperationGetRegion(f, 0));
  expect(fn.mlirBlockGetNumArguments(body) == 2, "mlirBlockGetNumArguments");
  pair = fn.mlirBlockGetFirstOperation(body);
  use = fn.mlirOperationGetNextInBlock(pair);
  end = fn.mlirBlockGetTerminator(body);
  expect(nameOf(pair) == "probe.pair" && nameOf(use) == "probe.use", "mlirOperationGetName");
  expect(nameOf(end) == "func.return", "mlirBlockGetTerminator");
  expect(fn.mlirOperationGetNumOperands(pair) == 2, "mlirOperationGetNumOperands");
  expect(fn.mlirOperationGetNumResults(pair) == 2 && fn.mlirOperationGetNumResults(use) == 0,
         "mlirOperationGetNumResults");
  expect(fn.mlirOperationGetNumOperands(end) == 1 && fn.mlirOperationGetNumResults(end) == 0,
         "mlirOperationGetNumOperands");
  expect(fn.mlirOperationGetNumRegions(use) == 2, "mlirOperationGetNumRegions");
  MlirRegion first = fn.mlirOperationGetRegion(use, 0);
  expect(!same(first, fn.mlirOperationGetRegion(use, 1)), "mlirOperationGetRegion");
  MlirBlock bb0 = fn.mlirRegionGetFirstBlock(first);
  MlirBlock bb1 = fn.mlirBlockGetNextInRegion(bb0);
  expect(!same(bb0, bb1) && !fn.mlirBlockGetNextInRegion(bb1).ptr, "mlirBlockGetNextInRegion");
  inner = fn.mlirBlockGetFirstOperation(bb0);
  expect(nameOf(inner) == "probe.inner", "mlirBlockGetFirstOperation");
}

void Conformance::attributeKinds() {
  MlirAttribute flag = attr("probe.flag");
  expect(!attr("absent").ptr, "mlirOperationGetAttributeByName");
  expect(fn.mlirOperationGetNumAttributes(module) == 6, "mlirOperationGetNumAttributes");
  MlirNamedAttribute second = fn.mlirOperationGetAttribute(module, 1);
  expect(textOf(second.name) == "probe.flag" && same(second.attribute, flag),
         "mlirOperationGetAttribute");

  struct Kind {
    const char *sample;
    bool (*is)(MlirAttribute);
    const char *name;
  };
  const Kind kinds[] = {
      {"probe.flag", fn.mlirAttributeIsABool, "mlirAttributeIsABool"},
      {"probe.text", fn.mlirAttributeIsAString, "mlirAttributeIsAString"},
      {"probe.list", fn.mlirAttributeIsAArray, "mlirAttributeIsAArray"},
      {"probe.dict", fn.mlirAttributeIsADictionary, "mlirAttributeIsADictionary"},
      {"probe.symbol", fn.mlirAttributeIsAFlatSymbolRef, "mlirAttributeIsAFlatSymbolRef"},
      {"probe.unit", nullptr, nullptr},
  };
  for (const Kind &kind : kinds)
    for (const Kind &other : kinds)
      if (kind.is)
        expect(bitsOf(kind.is(attr(other.sample))) == unsigned(&kind == &other), kind.name);
}

void Conformance::attributes() {
  MlirAttribute text = attr("probe.text"), symbol = attr("probe.symbol");
  expect(same(fn.mlirStringAttrGet(context, ref("some text")), text), "mlirStringAttrGet");
  expect(viewOf(fn.mlirStringAttrGetValue(text)) == "some text", "mlirStringAttrGetValue");
  expect(same(fn.mlirFlatSymbolRefAttrGet(context, ref("f")), symbol), "mlirFlatSymbolRefAttrGet");
  expect(viewOf(fn.mlirFlatSymbolRefAttrGetValue(symbol)) == "f", "mlirFlatSymbolRefAttrGetValue");

  MlirAttribute list = attr("probe.list");
  expect(fn.mlirArrayAttrGetNumElements(list) == 2, "mlirArrayAttrGetNumElements");
  MlirAttribute elements[] = {fn.mlirArrayAttrGetElement(list, 0),
                              fn.mlirArrayAttrGetElement(list, 1)};
  expect(same(elements[1], fn.mlirStringAttrGet(context, ref("second"))),
         "mlirArrayAttrGetElement");
  expect(same(fn.mlirArrayAttrGet(context, 2, elements), list), "mlirArrayAttrGet");
  expect(same(fn.mlirAttributeParseGet(context, ref("[7 : i32, \"second\"]")), list),
         "mlirAttributeParseGet");
  std::string printed;
  fn.mlirAttributePrint(list, append, &printed);
  expect(printed == "[7 : i32, \"second\"]", "mlirAttributePrint");
}

void Conformance::dictionaries() {
  MlirAttribute dict = attr("probe.dict"), unit = attr("probe.unit");
  expect(fn.mlirDictionaryAttrGetNumElements(dict) == 3, "mlirDictionaryAttrGetNumElements");
  MlirNamedAttribute entries[] = {fn.mlirDictionaryAttrGetElement(dict, 0),
                                  fn.mlirDictionaryAttrGetElement(dict, 1),
                                  fn.mlirDictionaryAttrGetElement(dict, 2)};
  expect(textOf(entries[1].name) == "b" && same(entries[1].attribute, unit),
         "mlirDictionaryAttrGetElement");
  expect(same(fn.mlirDictionaryAttrGet(context, 3, entries), dict), "mlirDictionaryAttrGet");
  expect(same(fn.mlirDictionaryAttrGetElementByName(dict, ref("b")), unit) &&
             !fn.mlirDictionaryAttrGetElementByName(dict, ref("d")).ptr,
         "mlirDictionaryAttrGetElementByName");
}

void Conformance::types() {
  MlirType f32 = fn.mlirValueGetType(fn.mlirOperationGetResult(pair, 0));
  MlirType i32 = fn.mlirValueGetType(fn.mlirOperationGetResult(pair, 1));
  MlirType inputs[] = {i32, f32};
  MlirAttribute type = fn.mlirTypeAttrGet(fn.mlirFunctionTypeGet(context, 2, inputs, 1, &i32));
  expect(same(type, fn.mlirOperationGetAttributeByName(f, ref("function_type"))),
         "mlirFunctionTypeGet");
  std::string printed;
  fn.mlirAttributePrint(type, append, &printed);
  expect(printed == "(i32, f32) -> i32", "mlirTypeAttrGet");
}

void Conformance::locations() {
  file = fn.mlirOperationGetLocation(f);
  call = fn.mlirOperationGetLocation(pair);
  fused = fn.mlirOperationGetLocation(use);
  name = fn.mlirOperationGetLocation(inner);
  expect(same(fn.mlirLocationGetContext(file), context), "mlirLocationGetContext");
  std::string printed;
  fn.mlirLocationPrint(call, append, &printed);
  expect(printed.find("callsite(") != std::string::npos, "mlirLocationPrint");
  MlirLocation unknown = fn.mlirLocationUnknownGet(context);
  printed.clear();
  fn.mlirLocationPrint(unknown, append, &printed);
  expect(printed == "loc(unknown)", "mlirLocationUnknownGet");

  bool (*kinds[])(MlirLocation) = {fn.mlirLocationIsAFileLineColRange, fn.mlirLocationIsAName,
                                   fn.mlirLocationIsACallSite, fn.mlirLocationIsAFused};
  const char *names[] = {"mlirLocationIsAFileLineColRange", "mlirLocationIsAName",
                         "mlirLocationIsACallSite", "mlirLocationIsAFused"};
  MlirLocation samples[] = {file, name, call, fused, unknown};
  for (int kind = 0; kind < 4; ++kind)
    for (int sample = 0; sample < 5; ++sample)
      expect(bitsOf(kinds[kind](samples[sample])) == unsigned(kind == sample), names[kind]);
  if (!wrong.empty())
    return;

  expect(textOf(fn.mlirLocationFileLineColRangeGetFilename(file)) == "probe.py",
         "mlirLocationFileLineColRangeGetFilename");
  expect(fn.mlirLocationFileLineColRangeGetStartLine(file) == 3,
         "mlirLocationFileLineColRangeGetStartLine");
  expect(fn.mlirLocationFileLineColRangeGetStartColumn(file) == 7,
         "mlirLocationFileLineColRangeGetStartColumn");
  expect(textOf(fn.mlirLocationNameGetName(name)) == "inner", "mlirLocationNameGetName");
  expect(same(fn.mlirLocationNameGetChildLoc(name), file), "mlirLocationNameGetChildLoc");
  expect(same(fn.mlirLocationNameGet(context, ref("inner"), file), name), "mlirLocationNameGet");
  expect(same(fn.mlirLocationCallSiteGetCallee(call), name), "mlirLocationCallSiteGetCallee");
  expect(same(fn.mlirLocationCallSiteGetCaller(call), file), "mlirLocationCallSiteGetCaller");
  expect(same(fn.mlirLocationCallSiteGet(name, file), call), "mlirLocationCallSiteGet");
  expect(fn.mlirLocationFusedGetNumLocations(fused) == 2, "mlirLocationFusedGetNumLocations");
  MlirLocation parts[2];
  fn.mlirLocationFusedGetLocations(fused, parts);
  expect(same(parts[0], file) && same(parts[1], name), "mlirLocationFusedGetLocations");
  MlirAttribute metadata = fn.mlirLocationFusedGetMetadata(fused);
  expect(same(metadata, fn.mlirStringAttrGet(context, ref("metadata"))),
         "mlirLocationFusedGetMetadata");
  expect(same(fn.mlirLocationFusedGet(context, 2, parts, metadata), fused), "mlirLocationFusedGet");
}

void Conformance::values() {
  MlirValue arg0 = fn.mlirBlockGetArgument(body, 0), arg1 = fn.mlirBlockGetArgument(body, 1);
  MlirValue result = fn.mlirOperationGetResult(pair, 1);
  expect(same(fn.mlirOperationGetOperand(pair, 0), arg1) &&
             same(fn.mlirOperationGetOperand(pair, 1), arg0),
         "mlirOperationGetOperand");
  expect(same(fn.mlirOperationGetOperand(end, 0), result), "mlirOperationGetResult");
  expect(bitsOf(fn.mlirValueIsABlockArgument(arg0)) == 1 &&
             bitsOf(fn.mlirValueIsABlockArgument(result)) == 0,
         "mlirValueIsABlockArgument");
  if (!wrong.empty())
    return;
  expect(same(fn.mlirBlockArgumentGetOwner(arg1), body), "mlirBlockArgumentGetOwner");
  expect(fn.mlirBlockArgumentGetArgNumber(arg1) == 1, "mlirBlockArgumentGetArgNumber");
  expect(same(fn.mlirOpResultGetOwner(result), pair), "mlirOpResultGetOwner");
  expect(fn.mlirOpResultGetResultNumber(result) == 1 &&
             fn.mlirOpResultGetResultNumber(fn.mlirOperationGetResult(pair, 0)) == 0,
         "mlirOpResultGetResultNumber");
  expect(same(fn.mlirValueGetLocation(arg1), name), "mlirValueGetLocation");
  expect(same(fn.mlirValueGetType(arg0), fn.mlirValueGetType(result)), "mlirValueGetType");

  expect(countUses(arg0) == 1 && countUses(result) == 4, "mlirOpOperandGetNextUse");
  expect(!fn.mlirValueGetFirstUse(fn.mlirOperationGetResult(pair, 0)).ptr, "mlirValueGetFirstUse");
  MlirOpOperand first = fn.mlirValueGetFirstUse(arg0);
  expect(same(fn.mlirOpOperandGetOwner(first), pair), "mlirOpOperandGetOwner");
  expect(fn.mlirOpOperandGetOperandNumber(first) == 1, "mlirOpOperandGetOperandNumber");
}

void Conformance::printing() {
  auto print = [&](auto configure) {
    std::string text;
    MlirOpPrintingFlags flags = fn.mlirOpPrintingFlagsCreate();
    configure(flags);
    fn.mlirOperationPrintWithFlags(module, flags, append, &text);
    fn.mlirOpPrintingFlagsDestroy(flags);
    return text;
  };
  auto has = [](const std::string &text, const char *part) {
    return text.find(part) != std::string::npos;
  };
  std::string plain = print([](MlirOpPrintingFlags) {});
  std::string located = print([&](MlirOpPrintingFlags flags) {
    fn.mlirOpPrintingFlagsEnableDebugInfo(flags, true, false);
  });
  std::string generic =
      print([&](MlirOpPrintingFlags flags) { fn.mlirOpPrintingFlagsPrintGenericOpForm(flags); });
  std::string local = print([&](MlirOpPrintingFlags flags) {
    fn.mlirOpPrintingFlagsEnableDebugInfo(flags, true, false);
    fn.mlirOpPrintingFlagsUseLocalScope(flags);
  });
  expect(has(plain, "func.func @f(") && !has(plain, "loc("), "mlirOperationPrintWithFlags");
  expect(has(located, "loc(#"), "mlirOpPrintingFlagsEnableDebugInfo");
  expect(has(generic, "\"func.func\"("), "mlirOpPrintingFlagsPrintGenericOpForm");
  expect(has(local, "loc(\"probe.py\":3:7)") && !has(local, "#loc"),
         "mlirOpPrintingFlagsUseLocalScope");
}

} // namespace hlotag::capi
