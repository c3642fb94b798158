// SPDX-License-Identifier: Apache-2.0
#include "hlotag/capi/conformance.h"
#include "hlotag/capi/table.h"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <string_view>

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

namespace {

MlirStringRef ref(std::string_view text) { return {text.data(), text.size()}; }
std::string_view viewOf(MlirStringRef text) { return {text.data, text.length}; }

void append(MlirStringRef chunk, void *text) {
  static_cast<std::string *>(text)->append(chunk.data, chunk.length);
}

template <class T> bool same(T a, T b) { return a.ptr == b.ptr; }

template <class T> T *allocate(std::initializer_list<T> items) {
  auto *copy = static_cast<T *>(std::malloc(items.size() * sizeof(T)));
  std::copy(items.begin(), items.end(), copy);
  return copy;
}

/// What a handler saw.
struct Seen {
  int errors = 0, deleted = 0;
  std::string message, notes;
  MlirLocation location{nullptr};
};

/// What an external pass saw.
struct Runs {
  int constructed = 0, destroyed = 0, runs = 0;
  bool fail = false;
  MlirOperation op{nullptr};
};

class Conformance {
public:
  explicit Conformance(MlirOperation module) : fn(capi::fn()), module(module) {}

  std::vector<std::string> run() {
    // In this order: each part uses what the ones before have tried.
    operations();
    if (wrong.empty())
      attributes();
    if (wrong.empty())
      locations();
    if (wrong.empty())
      values();
    if (wrong.empty())
      printing();
    if (wrong.empty())
      changes();
    if (wrong.empty())
      creation();
    if (wrong.empty())
      diagnostics();
    if (wrong.empty())
      passes();
    return wrong;
  }

private:
  void expect(bool ok, const char *function) {
    if (!ok)
      wrong.emplace_back(function);
  }

  std::string_view nameOf(MlirOperation op) {
    return viewOf(fn.mlirIdentifierStr(fn.mlirOperationGetName(op)));
  }
  std::string_view textOf(MlirIdentifier identifier) {
    return viewOf(fn.mlirIdentifierStr(identifier));
  }
  MlirAttribute attr(const char *name) {
    return fn.mlirOperationGetAttributeByName(module, ref(name));
  }
  std::string print(MlirOperation op) {
    std::string text;
    MlirOpPrintingFlags flags = fn.mlirOpPrintingFlagsCreate();
    fn.mlirOpPrintingFlagsEnableDebugInfo(flags, true, false);
    fn.mlirOperationPrintWithFlags(op, flags, append, &text);
    fn.mlirOpPrintingFlagsDestroy(flags);
    return text;
  }
  int countUses(MlirValue value) {
    int count = 0;
    for (MlirOpOperand use = fn.mlirValueGetFirstUse(value); use.ptr && count < 100;
         use = fn.mlirOpOperandGetNextUse(use))
      ++count;
    return count;
  }

  void operations();
  void attributes();
  void locations();
  void values();
  void printing();
  void changes();
  void creation();
  void diagnostics();
  void passes();
  bool runPass(Runs &runs, bool verify);

  const Table &fn;
  MlirOperation module;
  MlirContext context{nullptr};
  MlirOperation f{nullptr}, pair{nullptr}, use{nullptr}, end{nullptr}, inner{nullptr};
  MlirBlock body{nullptr};
  MlirLocation file{nullptr}, name{nullptr}, call{nullptr}, fused{nullptr};
  std::vector<std::string> wrong;
};

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
  expect(same(fn.mlirBlockGetParentRegion(block), region), "mlirBlockGetParentRegion");
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
  expect(!same(bb0, bb1) && same(fn.mlirBlockGetParentRegion(bb1), first),
         "mlirBlockGetNextInRegion");
  inner = fn.mlirBlockGetFirstOperation(bb0);
  expect(nameOf(inner) == "probe.inner", "mlirBlockGetFirstOperation");
}

void Conformance::attributes() {
  MlirAttribute flag = attr("probe.flag"), text = attr("probe.text"), list = attr("probe.list");
  MlirAttribute dict = attr("probe.dict"), symbol = attr("probe.symbol"), unit = attr("probe.unit");
  expect(!attr("absent").ptr, "mlirOperationGetAttributeByName");
  expect(fn.mlirOperationGetNumAttributes(module) == 6, "mlirOperationGetNumAttributes");
  MlirNamedAttribute second = fn.mlirOperationGetAttribute(module, 1);
  expect(textOf(second.name) == "probe.flag" && same(second.attribute, flag),
         "mlirOperationGetAttribute");
  expect(same(fn.mlirAttributeGetContext(flag), context), "mlirAttributeGetContext");

  bool (*kinds[])(MlirAttribute) = {fn.mlirAttributeIsABool, fn.mlirAttributeIsAString,
                                    fn.mlirAttributeIsAArray, fn.mlirAttributeIsADictionary,
                                    fn.mlirAttributeIsAFlatSymbolRef};
  const char *names[] = {"mlirAttributeIsABool", "mlirAttributeIsAString", "mlirAttributeIsAArray",
                         "mlirAttributeIsADictionary", "mlirAttributeIsAFlatSymbolRef"};
  MlirAttribute samples[] = {flag, text, list, dict, symbol, unit};
  for (int kind = 0; kind < 5; ++kind)
    for (int sample = 0; sample < 6; ++sample)
      expect(kinds[kind](samples[sample]) == (kind == sample), names[kind]);
  if (!wrong.empty())
    return;

  expect(same(fn.mlirStringAttrGet(context, ref("some text")), text), "mlirStringAttrGet");
  expect(viewOf(fn.mlirStringAttrGetValue(text)) == "some text", "mlirStringAttrGetValue");
  expect(same(fn.mlirUnitAttrGet(context), unit), "mlirUnitAttrGet");
  expect(same(fn.mlirFlatSymbolRefAttrGet(context, ref("f")), symbol), "mlirFlatSymbolRefAttrGet");
  expect(viewOf(fn.mlirFlatSymbolRefAttrGetValue(symbol)) == "f", "mlirFlatSymbolRefAttrGetValue");
  expect(fn.mlirArrayAttrGetNumElements(list) == 2, "mlirArrayAttrGetNumElements");
  MlirAttribute elements[] = {fn.mlirArrayAttrGetElement(list, 0),
                              fn.mlirArrayAttrGetElement(list, 1)};
  expect(same(elements[1], fn.mlirStringAttrGet(context, ref("second"))),
         "mlirArrayAttrGetElement");
  expect(same(fn.mlirArrayAttrGet(context, 2, elements), list), "mlirArrayAttrGet");
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
  expect(same(fn.mlirAttributeParseGet(context, ref("[7 : i32, \"second\"]")), list),
         "mlirAttributeParseGet");
  std::string printed;
  fn.mlirAttributePrint(list, append, &printed);
  expect(printed == "[7 : i32, \"second\"]", "mlirAttributePrint");

  MlirType f32 = fn.mlirValueGetType(fn.mlirOperationGetResult(pair, 0));
  MlirType i32 = fn.mlirValueGetType(fn.mlirOperationGetResult(pair, 1));
  MlirType inputs[] = {i32, f32};
  MlirAttribute type = fn.mlirTypeAttrGet(fn.mlirFunctionTypeGet(context, 2, inputs, 1, &i32));
  expect(same(type, fn.mlirOperationGetAttributeByName(f, ref("function_type"))),
         "mlirFunctionTypeGet");
  printed.clear();
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
      expect(kinds[kind](samples[sample]) == (kind == sample), names[kind]);
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
  expect(fn.mlirValueIsABlockArgument(arg0) && !fn.mlirValueIsABlockArgument(result),
         "mlirValueIsABlockArgument");
  expect(fn.mlirValueIsAOpResult(result) && !fn.mlirValueIsAOpResult(arg0), "mlirValueIsAOpResult");
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

  fn.mlirOperationMoveAfter(pair, use);
  expect(same(fn.mlirOperationGetNextInBlock(use), pair), "mlirOperationMoveAfter");
  expect(!fn.mlirOperationIsBeforeInBlock(pair, use), "mlirOperationMoveAfter");
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

void Conformance::diagnostics() {
  static const Table *table;
  table = &fn;
  Seen seen;
  auto handler = [](MlirDiagnostic diagnostic, void *data) -> MlirLogicalResult {
    auto &seen = *static_cast<Seen *>(data);
    seen.errors += table->mlirDiagnosticGetSeverity(diagnostic) == MlirDiagnosticError;
    seen.location = table->mlirDiagnosticGetLocation(diagnostic);
    seen.message.clear();
    table->mlirDiagnosticPrint(diagnostic, append, &seen.message);
    intptr_t notes = table->mlirDiagnosticGetNumNotes(diagnostic);
    for (intptr_t i = 0; i < notes; ++i) {
      MlirDiagnostic note = table->mlirDiagnosticGetNote(diagnostic, i);
      if (table->mlirDiagnosticGetSeverity(note) == MlirDiagnosticNote)
        table->mlirDiagnosticPrint(note, append, &seen.notes);
    }
    return {1};
  };
  MlirDiagnosticHandlerID id = fn.mlirContextAttachDiagnosticHandler(
      context, handler, &seen, [](void *data) { ++static_cast<Seen *>(data)->deleted; });
  fn.mlirEmitError(name, "a message");
  expect(seen.errors == 1 && seen.message == "a message" && same(seen.location, name) &&
             seen.notes.empty(),
         "mlirEmitError");
  expect(!fn.mlirAttributeParseGet(context, ref("[1,")).ptr && seen.errors == 2,
         "mlirAttributeParseGet");
  // A definition after its use: an error with a note.
  fn.mlirOperationMoveAfter(pair, use);
  expect(!fn.mlirOperationVerify(module) && seen.errors == 3, "mlirOperationVerify");
  expect(seen.notes.find("defined here") != std::string::npos, "mlirDiagnosticGetNote");
  fn.mlirOperationMoveAfter(use, pair);
  expect(fn.mlirOperationVerify(module), "mlirOperationVerify");
  fn.mlirContextDetachDiagnosticHandler(context, id);
  expect(seen.deleted == 1, "mlirContextDetachDiagnosticHandler");
}

bool Conformance::runPass(Runs &runs, bool verify) {
  static const Table *table;
  table = &fn;
  static MlirTypeID id = fn.mlirTypeIDAllocatorAllocateTypeID(fn.mlirTypeIDAllocatorCreate());
  MlirExternalPassCallbacks callbacks{};
  callbacks.construct = [](void *data) { ++static_cast<Runs *>(data)->constructed; };
  callbacks.destruct = [](void *data) { ++static_cast<Runs *>(data)->destroyed; };
  callbacks.clone = [](void *data) { return data; };
  callbacks.run = [](MlirOperation op, MlirExternalPass pass, void *data) {
    auto &runs = *static_cast<Runs *>(data);
    ++runs.runs;
    runs.op = op;
    if (runs.fail)
      table->mlirExternalPassSignalFailure(pass);
  };
  MlirPassManager manager = fn.mlirPassManagerCreate(context);
  fn.mlirPassManagerEnableVerifier(manager, verify);
  fn.mlirPassManagerAddOwnedPass(
      manager, fn.mlirCreateExternalPass(id, ref("Probe"), ref("probe"), ref("a pass"),
                                         ref("builtin.module"), 0, nullptr, callbacks, &runs));
  bool ok = fn.mlirPassManagerRunOnOp(manager, module).value != 0;
  fn.mlirPassManagerDestroy(manager);
  return ok;
}

void Conformance::passes() {
  MlirTypeIDAllocator allocator = fn.mlirTypeIDAllocatorCreate();
  expect(fn.mlirTypeIDAllocatorAllocateTypeID(allocator).ptr !=
             fn.mlirTypeIDAllocatorAllocateTypeID(allocator).ptr,
         "mlirTypeIDAllocatorAllocateTypeID");

  Runs good;
  expect(runPass(good, true) && good.runs == 1 && same(good.op, module), "mlirPassManagerRunOnOp");
  expect(good.constructed > 0 && good.constructed <= good.destroyed, "mlirPassManagerDestroy");
  Runs bad;
  bad.fail = true;
  expect(!runPass(bad, true) && bad.runs == 1, "mlirExternalPassSignalFailure");

  // On an invalid module, with and without the verifier.
  Seen seen;
  auto swallow = [](MlirDiagnostic, void *) -> MlirLogicalResult { return {1}; };
  MlirDiagnosticHandlerID id =
      fn.mlirContextAttachDiagnosticHandler(context, swallow, &seen, nullptr);
  fn.mlirOperationMoveAfter(pair, use);
  Runs unchecked, checked;
  expect(runPass(unchecked, false), "mlirPassManagerEnableVerifier");
  expect(!runPass(checked, true), "mlirPassManagerEnableVerifier");
  fn.mlirOperationMoveAfter(use, pair);
  fn.mlirContextDetachDiagnosticHandler(context, id);

  std::string reason;
  MlirPassManager manager = fn.mlirPassManagerCreate(context);
  MlirOpPassManager passes = fn.mlirPassManagerGetAsOpPassManager(manager);
  expect(fn.mlirOpPassManagerAddPipeline(passes, ref("symbol-dce"), append, &reason).value != 0,
         "mlirOpPassManagerAddPipeline");
  bool accepted =
      fn.mlirOpPassManagerAddPipeline(passes, ref("no-such-pass"), append, &reason).value != 0;
  expect(!accepted && reason.find("no-such-pass") != std::string::npos,
         "mlirOpPassManagerAddPipeline");
  fn.mlirPassManagerDestroy(manager);

  // What jaxlib's pass removes is the unused private function.
  MlirOperation copy = fn.mlirOperationClone(module);
  manager = fn.mlirPassManagerCreate(context);
  (void)fn.mlirOpPassManagerAddPipeline(fn.mlirPassManagerGetAsOpPassManager(manager),
                                        ref("symbol-dce"), append, &reason);
  bool ran = fn.mlirPassManagerRunOnOp(manager, copy).value != 0;
  fn.mlirPassManagerDestroy(manager);
  MlirBlock block = fn.mlirRegionGetFirstBlock(fn.mlirOperationGetRegion(copy, 0));
  bool removed = !fn.mlirOperationGetNextInBlock(fn.mlirBlockGetFirstOperation(block)).ptr;
  expect(ran && removed, "mlirPassManagerGetAsOpPassManager");
  fn.mlirOperationDestroy(copy);
}

} // namespace

std::vector<std::string> findWrong(MlirOperation module) { return Conformance(module).run(); }

} // namespace hlotag::capi
