// SPDX-License-Identifier: Apache-2.0
//
// Identifiers, types, attributes, locations.
#include "session.h"

namespace hlotag::bindings {

namespace {

nb::object contextOf(MlirContext context) {
  nb::object present = session().context();
  return pointerOf<MlirContext>(present).ptr == context.ptr ? present : view(context);
}

template <class T> bool isA(T handle, const nb::object &Class) {
  return nb::isinstance(session().object(handle), Class);
}

void print(nb::handle object, MlirStringCallback callback, void *userData) {
  auto text = nb::cast<std::string>(nb::str(object));
  callback({text.data(), text.size()}, userData);
}

MlirIdentifier identifierOf(nb::handle text) {
  return session().identifier(nb::cast<std::string_view>(text));
}

} // namespace

MlirIdentifier mlirIdentifierGet(MlirContext, MlirStringRef text) {
  return session().identifier({text.data, text.length});
}

MlirStringRef mlirIdentifierStr(MlirIdentifier identifier) {
  const std::string &text = *static_cast<const std::string *>(identifier.ptr);
  return {text.data(), text.size()};
}

MlirType mlirFunctionTypeGet(MlirContext context, intptr_t numInputs, MlirType const *inputs,
                             intptr_t numResults, MlirType const *results) {
  return session().type(classes().FunctionType.attr("get")(
      listOf(numInputs, inputs), listOf(numResults, results), contextOf(context)));
}

void mlirAttributePrint(MlirAttribute attribute, MlirStringCallback callback, void *userData) {
  print(session().object(attribute), callback, userData);
}

MlirAttribute mlirAttributeParseGet(MlirContext context, MlirStringRef text) {
  ErrorsAreEmitted errors;
  MlirAttribute result{nullptr};
  succeeds([&] {
    result =
        session().attribute(classes().Attribute.attr("parse")(toStr(text), contextOf(context)));
  });
  return result;
}

bool mlirAttributeIsABool(MlirAttribute attribute) { return isA(attribute, classes().BoolAttr); }

bool mlirAttributeIsAString(MlirAttribute attribute) {
  return isA(attribute, classes().StringAttr);
}

MlirAttribute mlirStringAttrGet(MlirContext context, MlirStringRef text) {
  nb::bytes bytes(text.data, text.length);
  return session().attribute(classes().StringAttr.attr("get")(bytes, contextOf(context)));
}

MlirStringRef mlirStringAttrGetValue(MlirAttribute attribute) {
  auto bytes = nb::cast<nb::bytes>(session().object(attribute).attr("value_bytes"));
  return session().text({bytes.c_str(), bytes.size()});
}

bool mlirAttributeIsADictionary(MlirAttribute attribute) {
  return isA(attribute, classes().DictAttr);
}

MlirAttribute mlirDictionaryAttrGet(MlirContext context, intptr_t count,
                                    MlirNamedAttribute const *entries) {
  nb::dict dict;
  for (intptr_t i = 0; i < count; ++i)
    dict[toStr(mlirIdentifierStr(entries[i].name))] = session().object(entries[i].attribute);
  return session().attribute(classes().DictAttr.attr("get")(dict, contextOf(context)));
}

intptr_t mlirDictionaryAttrGetNumElements(MlirAttribute attribute) {
  return count(session().object(attribute));
}

MlirNamedAttribute mlirDictionaryAttrGetElement(MlirAttribute attribute, intptr_t index) {
  nb::object entry = session().object(attribute)[index];
  return {identifierOf(entry.attr("name")), session().attribute(entry.attr("attr"))};
}

MlirAttribute mlirDictionaryAttrGetElementByName(MlirAttribute attribute, MlirStringRef name) {
  nb::object dictionary = session().object(attribute);
  nb::str key = toStr(name);
  if (!nb::cast<bool>(dictionary.attr("__contains__")(key)))
    return {nullptr};
  return session().attribute(dictionary[key]);
}

bool mlirAttributeIsAArray(MlirAttribute attribute) { return isA(attribute, classes().ArrayAttr); }

MlirAttribute mlirArrayAttrGet(MlirContext context, intptr_t count, MlirAttribute const *elements) {
  return session().attribute(
      classes().ArrayAttr.attr("get")(listOf(count, elements), contextOf(context)));
}

intptr_t mlirArrayAttrGetNumElements(MlirAttribute attribute) {
  return count(session().object(attribute));
}

MlirAttribute mlirArrayAttrGetElement(MlirAttribute attribute, intptr_t index) {
  return session().attribute(session().object(attribute)[index]);
}

bool mlirAttributeIsAFlatSymbolRef(MlirAttribute attribute) {
  return isA(attribute, classes().FlatSymbolRefAttr);
}

MlirAttribute mlirFlatSymbolRefAttrGet(MlirContext context, MlirStringRef symbol) {
  return session().attribute(
      classes().FlatSymbolRefAttr.attr("get")(toStr(symbol), contextOf(context)));
}

MlirStringRef mlirFlatSymbolRefAttrGetValue(MlirAttribute attribute) {
  return session().text(nb::cast<std::string_view>(session().object(attribute).attr("value")));
}

MlirAttribute mlirTypeAttrGet(MlirType type) {
  return session().attribute(
      classes().TypeAttr.attr("get")(session().object(type), session().context()));
}

MlirContext mlirLocationGetContext(MlirLocation location) {
  return pointerOf<MlirContext>(session().object(location).attr("context"));
}

void mlirLocationPrint(MlirLocation location, MlirStringCallback callback, void *userData) {
  print(session().object(location), callback, userData);
}

MlirLocation mlirLocationUnknownGet(MlirContext context) {
  return session().location(classes().Location.attr("unknown")(contextOf(context)));
}

bool mlirLocationIsAName(MlirLocation location) { return isA(location, classes().NameLoc); }

MlirLocation mlirLocationNameGet(MlirContext context, MlirStringRef name, MlirLocation child) {
  nb::object inner = child.ptr ? session().object(child) : nb::none();
  return session().location(
      classes().Location.attr("name")(toStr(name), inner, contextOf(context)));
}

MlirIdentifier mlirLocationNameGetName(MlirLocation location) {
  return identifierOf(session().object(location).attr("name_str"));
}

MlirLocation mlirLocationNameGetChildLoc(MlirLocation location) {
  return session().location(session().object(location).attr("child_loc"));
}

bool mlirLocationIsACallSite(MlirLocation location) { return isA(location, classes().CallSiteLoc); }

MlirLocation mlirLocationCallSiteGet(MlirLocation callee, MlirLocation caller) {
  return session().location(classes().Location.attr("callsite")(
      session().object(callee), listOf(1, &caller), session().context()));
}

MlirLocation mlirLocationCallSiteGetCallee(MlirLocation location) {
  return session().location(session().object(location).attr("callee"));
}

MlirLocation mlirLocationCallSiteGetCaller(MlirLocation location) {
  return session().location(session().object(location).attr("caller"));
}

bool mlirLocationIsAFused(MlirLocation location) { return isA(location, classes().FusedLoc); }

MlirLocation mlirLocationFusedGet(MlirContext context, intptr_t count, MlirLocation const *parts,
                                  MlirAttribute metadata) {
  nb::object extra = metadata.ptr ? session().object(metadata) : nb::none();
  return session().location(
      classes().Location.attr("fused")(listOf(count, parts), extra, contextOf(context)));
}

unsigned mlirLocationFusedGetNumLocations(MlirLocation location) {
  return unsigned(count(session().object(location).attr("locations")));
}

void mlirLocationFusedGetLocations(MlirLocation location, MlirLocation *locations) {
  nb::object parts = session().object(location).attr("locations");
  for (nb::handle part : parts)
    *locations++ = session().location(part);
}

MlirAttribute mlirLocationFusedGetMetadata(MlirLocation location) {
  return session().attribute(session().object(location).attr("metadata"));
}

bool mlirLocationIsAFileLineColRange(MlirLocation location) {
  return isA(location, classes().FileLineColLoc);
}

MlirIdentifier mlirLocationFileLineColRangeGetFilename(MlirLocation location) {
  return identifierOf(session().object(location).attr("filename"));
}

int mlirLocationFileLineColRangeGetStartLine(MlirLocation location) {
  return nb::cast<int>(session().object(location).attr("start_line"));
}

int mlirLocationFileLineColRangeGetStartColumn(MlirLocation location) {
  return nb::cast<int>(session().object(location).attr("start_col"));
}

} // namespace hlotag::bindings
