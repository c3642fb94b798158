// SPDX-License-Identifier: Apache-2.0
#include "session.h"

#include <cstdlib>

namespace hlotag::bindings {

namespace {

/// Flags that `Operation.get_asm` takes.
struct PrintingFlags {
  bool debugInfo = false, pretty = false, generic = false, localScope = false;
};

PrintingFlags &flagsOf(MlirOpPrintingFlags handle) {
  return *static_cast<PrintingFlags *>(handle.ptr);
}

nb::object insertionPoint(const char *kind, nb::object at) {
  return classes().InsertionPoint.attr(kind)(at);
}

/// Returns the attribute `name` in a map of attributes, or null.
///
/// jaxlib has no class for the elements of complex constants: a look-up raises, and an entry's
/// `attr` aborts. The error's message contains their text; a string with it stands for the
/// attribute, so that constants can be compared.
MlirAttribute valueOf(nb::handle attributes, nb::handle name) {
  try {
    return session().attribute(attributes.attr("get")(name));
  } catch (nb::python_error &error) {
    if (!error.matches(PyExc_TypeError))
      throw;
    nb::object text = nb::str(error.value());
    return session().attribute(classes().StringAttr.attr("get")(text, session().context()));
  }
}

/// The operation after an insertion point, or null.
MlirOperation operationAt(nb::handle insertionPoint) {
  nb::object operation = insertionPoint.attr("ref_operation");
  return operation.is_none() ? MlirOperation{nullptr} : pointerOf<MlirOperation>(operation);
}

} // namespace

MlirContext mlirOperationGetContext(MlirOperation) {
  return pointerOf<MlirContext>(session().context());
}

MlirIdentifier mlirOperationGetName(MlirOperation op) {
  return session().identifier(nb::cast<std::string_view>(session().object(op).attr("name")));
}

MlirLocation mlirOperationGetLocation(MlirOperation op) {
  return session().location(session().object(op).attr("location"));
}

void mlirOperationSetLocation(MlirOperation op, MlirLocation location) {
  session().object(op).attr("location") = session().object(location);
}

MlirBlock mlirOperationGetBlock(MlirOperation op) {
  // The bindings crash on the block of an operation without a parent.
  if (!mlirOperationGetParentOperation(op).ptr)
    return {nullptr};
  return session().block(session().object(op).attr("block"));
}

MlirOperation mlirOperationGetParentOperation(MlirOperation op) {
  if (session().isOwned(op))
    return {nullptr};
  nb::object parent = session().object(op).attr("parent");
  return parent.is_none() ? MlirOperation{nullptr} : pointerOf<MlirOperation>(parent);
}

MlirOperation mlirOperationGetNextInBlock(MlirOperation op) {
  if (!mlirOperationGetParentOperation(op).ptr)
    return {nullptr};
  return operationAt(insertionPoint("after", session().object(op)));
}

intptr_t mlirOperationGetNumRegions(MlirOperation op) {
  return count(session().object(op).attr("regions"));
}

MlirRegion mlirOperationGetRegion(MlirOperation op, intptr_t index) {
  return session().region(op, index);
}

intptr_t mlirOperationGetNumOperands(MlirOperation op) {
  return count(session().object(op).attr("operands"));
}

MlirValue mlirOperationGetOperand(MlirOperation op, intptr_t index) {
  return pointerOf<MlirValue>(session().object(op).attr("operands")[index]);
}

void mlirOperationSetOperand(MlirOperation op, intptr_t index, MlirValue value) {
  session().object(op).attr("operands")[index] = view(value);
  session().forgetUses();
}

intptr_t mlirOperationGetNumResults(MlirOperation op) {
  return count(session().object(op).attr("results"));
}

MlirValue mlirOperationGetResult(MlirOperation op, intptr_t index) {
  return pointerOf<MlirValue>(session().object(op).attr("results")[index]);
}

intptr_t mlirOperationGetNumAttributes(MlirOperation op) {
  return count(session().object(op).attr("attributes"));
}

MlirNamedAttribute mlirOperationGetAttribute(MlirOperation op, intptr_t index) {
  nb::object attributes = session().object(op).attr("attributes");
  nb::object name = attributes[index].attr("name"); // Its `attr` may abort; see valueOf.
  return {session().identifier(nb::cast<std::string_view>(name)), valueOf(attributes, name)};
}

MlirAttribute mlirOperationGetAttributeByName(MlirOperation op, MlirStringRef name) {
  return valueOf(session().object(op).attr("attributes"), toStr(name));
}

void mlirOperationSetAttributeByName(MlirOperation op, MlirStringRef name, MlirAttribute value) {
  session().object(op).attr("attributes")[toStr(name)] = session().object(value);
}

bool mlirOperationRemoveAttributeByName(MlirOperation op, MlirStringRef name) {
  nb::object attributes = session().object(op).attr("attributes");
  return succeeds([&] { nb::del(attributes[toStr(name)]); }, nb::borrow(PyExc_KeyError));
}

MlirOperation mlirOperationCreate(MlirOperationState *state) {
  nb::dict attributes;
  for (intptr_t i = 0; i < state->nAttributes; ++i)
    attributes[toStr(mlirIdentifierStr(state->attributes[i].name))] =
        session().object(state->attributes[i].attribute);
  nb::list operands;
  for (intptr_t i = 0; i < state->nOperands; ++i)
    operands.append(view(state->operands[i]));
  ErrorsAreEmitted errors;
  nb::object made = classes().Operation.attr("create")(
      toStr(state->name), listOf(state->nResults, state->results), operands, attributes,
      listOf(state->nSuccessors, state->successors), state->nRegions,
      session().object(state->location), nb::arg("ip") = false,
      nb::arg("infer_type") = state->enableResultTypeInference);
  MlirOperation op = session().own(made);
  for (intptr_t i = 0; i < state->nRegions; ++i) {
    MlirRegion body = state->regions[i];
    for (MlirBlock block; (block = mlirRegionGetFirstBlock(body)).ptr;)
      session().append(block, session().region(op, i));
    mlirOperationDestroy({session().key(body).first});
  }
  session().forgetUses();
  // As the C function does: it takes ownership of the regions.
  std::free(state->results);
  std::free(state->operands);
  std::free(state->regions);
  std::free(state->successors);
  std::free(state->attributes);
  return op;
}

MlirOperation mlirOperationClone(MlirOperation op) {
  session().forgetUses();
  // "ip": override the insertion point of an enclosing `with`.
  nb::object copy = session().object(op).attr("clone")(nb::arg("ip") = false);
  return session().own(copy.attr("operation"));
}

void mlirOperationDestroy(MlirOperation op) {
  runNoexcept("mlirOperationDestroy", [&] {
    session().disown(op).attr("erase")();
    session().forgetBlocks();
    session().forgetUses();
  });
}

void mlirOperationRemoveFromParent(MlirOperation op) {
  nb::object operation = session().object(op);
  operation.attr("detach_from_parent")();
  session().own(operation);
}

bool mlirOperationIsBeforeInBlock(MlirOperation op, MlirOperation other) {
  return nb::cast<bool>(session().object(op).attr("is_before_in_block")(session().object(other)));
}

bool mlirOperationVerify(MlirOperation op) {
  ErrorsAreEmitted errors;
  return succeeds([&] { session().object(op).attr("verify")(); });
}

void mlirOperationPrintWithFlags(MlirOperation op, MlirOpPrintingFlags handle,
                                 MlirStringCallback callback, void *userData) {
  const PrintingFlags &flags = flagsOf(handle);
  nb::object text = session().object(op).attr("get_asm")(
      nb::arg("binary") = true, nb::arg("enable_debug_info") = flags.debugInfo,
      nb::arg("pretty_debug_info") = flags.pretty, nb::arg("print_generic_op_form") = flags.generic,
      nb::arg("use_local_scope") = flags.localScope);
  auto bytes = nb::cast<nb::bytes>(text);
  callback({bytes.c_str(), bytes.size()}, userData);
}

MlirOpPrintingFlags mlirOpPrintingFlagsCreate() { return {new PrintingFlags()}; }

void mlirOpPrintingFlagsDestroy(MlirOpPrintingFlags flags) { delete &flagsOf(flags); }

void mlirOpPrintingFlagsEnableDebugInfo(MlirOpPrintingFlags flags, bool enable, bool pretty) {
  flagsOf(flags).debugInfo = enable;
  flagsOf(flags).pretty = pretty;
}

void mlirOpPrintingFlagsPrintGenericOpForm(MlirOpPrintingFlags flags) {
  flagsOf(flags).generic = true;
}

void mlirOpPrintingFlagsUseLocalScope(MlirOpPrintingFlags flags) {
  flagsOf(flags).localScope = true;
}

MlirRegion mlirRegionCreate() {
  // In the bindings a region needs an owner: a module, dropped once the region is used.
  nb::object unknown = classes().Location.attr("unknown")(session().context());
  nb::object holder = classes().Operation.attr("create")(
      "builtin.module", nb::arg("regions") = 1, nb::arg("loc") = unknown, nb::arg("ip") = false);
  return session().region(session().own(holder), 0);
}

MlirBlock mlirBlockCreate(intptr_t numArguments, MlirType const *types,
                          MlirLocation const *locations) {
  nb::object region = session().object(session().detachedRegion());
  nb::object block = classes().Block.attr("create_at_start")(region, listOf(numArguments, types),
                                                             listOf(numArguments, locations));
  session().forgetBlocks();
  return session().block(block);
}

MlirBlock mlirRegionGetFirstBlock(MlirRegion region) { return session().firstBlock(region); }

void mlirRegionAppendOwnedBlock(MlirRegion region, MlirBlock block) {
  session().append(block, region);
}

MlirBlock mlirBlockGetNextInRegion(MlirBlock block) { return session().nextBlock(block); }

MlirOperation mlirBlockGetParentOperation(MlirBlock block) {
  return pointerOf<MlirOperation>(session().object(block).attr("region").attr("owner"));
}

MlirOperation mlirBlockGetFirstOperation(MlirBlock block) {
  return operationAt(insertionPoint("at_block_begin", session().object(block)));
}

MlirOperation mlirBlockGetTerminator(MlirBlock block) {
  MlirOperation terminator{nullptr};
  succeeds(
      [&] {
        terminator = operationAt(insertionPoint("at_block_terminator", session().object(block)));
      },
      nb::borrow(PyExc_ValueError));
  return terminator;
}

intptr_t mlirBlockGetNumArguments(MlirBlock block) {
  return count(session().object(block).attr("arguments"));
}

MlirValue mlirBlockGetArgument(MlirBlock block, intptr_t index) {
  return pointerOf<MlirValue>(session().object(block).attr("arguments")[index]);
}

void mlirBlockDetach(MlirBlock block) { session().append(block, session().detachedRegion()); }

void mlirBlockInsertOwnedOperationBefore(MlirBlock block, MlirOperation before, MlirOperation op) {
  nb::object operation = session().disown(op);
  if (before.ptr)
    classes().InsertionPoint(session().object(before)).attr("insert")(operation);
  else
    session().object(block).attr("append")(operation);
}

bool mlirValueIsABlockArgument(MlirValue value) {
  // Not by the value's class: users can register their own.
  return nb::isinstance(view(value).attr("owner"), classes().Block);
}

MlirType mlirValueGetType(MlirValue value) { return session().type(view(value).attr("type")); }

MlirLocation mlirValueGetLocation(MlirValue value) {
  return session().location(view(value).attr("location"));
}

MlirBlock mlirBlockArgumentGetOwner(MlirValue value) {
  return session().block(view(value).attr("owner"));
}

intptr_t mlirBlockArgumentGetArgNumber(MlirValue value) {
  return nb::cast<intptr_t>(classes().BlockArgument(view(value)).attr("arg_number"));
}

void mlirBlockArgumentSetLocation(MlirValue value, MlirLocation location) {
  classes().BlockArgument(view(value)).attr("set_location")(session().object(location));
}

MlirOperation mlirOpResultGetOwner(MlirValue value) {
  return pointerOf<MlirOperation>(view(value).attr("owner"));
}

intptr_t mlirOpResultGetResultNumber(MlirValue value) {
  return nb::cast<intptr_t>(classes().OpResult(view(value)).attr("result_number"));
}

MlirOpOperand mlirValueGetFirstUse(MlirValue value) { return {session().firstUse(value)}; }

MlirOpOperand mlirOpOperandGetNextUse(MlirOpOperand use) {
  return {static_cast<Use *>(use.ptr)->next};
}

MlirOperation mlirOpOperandGetOwner(MlirOpOperand use) {
  return static_cast<Use *>(use.ptr)->owner;
}

unsigned mlirOpOperandGetOperandNumber(MlirOpOperand use) {
  return static_cast<Use *>(use.ptr)->number;
}

} // namespace hlotag::bindings
