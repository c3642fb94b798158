// SPDX-License-Identifier: Apache-2.0
#include "hlotag/ir/rewriter.h"

#include "hlotag/ir/keys.h"

#include <algorithm>

namespace hlotag::ir {

namespace {

// The journal has untyped pointers; these functions restore their types.
MlirOperation asOperation(const void *pointer) { return {const_cast<void *>(pointer)}; }
MlirBlock asBlock(const void *pointer) { return {const_cast<void *>(pointer)}; }

void writeAttr(MlirOperation op, MlirIdentifier name, MlirAttribute value) {
  const capi::Table &fn = capi::fn();
  MlirStringRef key = fn.mlirIdentifierStr(name);
  if (value.ptr)
    fn.mlirOperationSetAttributeByName(op, key, value);
  else
    fn.mlirOperationRemoveAttributeByName(op, key);
}

} // namespace

Rewriter::Rewriter(MlirContext context)
    : context_(context), frontendAttributes_(Identifier::get(context, kFrontendAttributes)) {}

bool Rewriter::setAttr(Operation op, Identifier name, Attribute value) {
  Attribute present = op.attr(name.str());
  if (present == value)
    return false;
  record(Kind::Attr, op.opaque(), name.opaque(), present.opaque());
  writeAttr(op.raw(), name.raw(), value.raw());
  return true;
}

bool Rewriter::setLocation(Operation op, Location location) {
  Location present = op.location();
  if (present == location)
    return false;
  record(Kind::Location, op.opaque(), nullptr, present.opaque());
  capi::fn().mlirOperationSetLocation(op.raw(), location.raw());
  return true;
}

bool Rewriter::setLocation(Value blockArgument, Location location) {
  Location former = blockArgument.location();
  if (former == location)
    return false;
  record(Kind::ArgLocation, blockArgument.opaque(), nullptr, former.opaque());
  capi::fn().mlirBlockArgumentSetLocation(blockArgument.raw(), location.raw());
  return true;
}

bool Rewriter::setOperand(Operation op, intptr_t index, Value value) {
  Value former = op.operands()[index];
  if (former == value)
    return false;
  record(Kind::Operand, op.opaque(), nullptr, former.opaque(), unsigned(index));
  capi::fn().mlirOperationSetOperand(op.raw(), index, value.raw());
  return true;
}

Operation Rewriter::insert(OwnedOperation op, Block block, Operation before) {
  record(Kind::Insert, op.get().opaque(), nullptr, nullptr);
  Operation inserted = op.release();
  capi::fn().mlirBlockInsertOwnedOperationBefore(block.raw(), before.raw(), inserted.raw());
  return inserted;
}

void Rewriter::move(Operation op, Block block, Operation before) {
  record(Kind::Move, op.opaque(), op.block().opaque(), op.nextInBlock().opaque());
  capi::fn().mlirOperationRemoveFromParent(op.raw());
  capi::fn().mlirBlockInsertOwnedOperationBefore(block.raw(), before.raw(), op.raw());
}

void Rewriter::undo(const Change &change) {
  numMoves_ += change.kind >= Kind::Insert;
  const capi::Table &fn = capi::fn();
  switch (change.kind) {
  case Kind::Attr:
    writeAttr(asOperation(change.subject), {change.where}, {change.former});
    return;
  case Kind::Location:
    fn.mlirOperationSetLocation(asOperation(change.subject), {change.former});
    return;
  case Kind::ArgLocation:
    fn.mlirBlockArgumentSetLocation({change.subject}, {change.former});
    return;
  case Kind::Operand:
    fn.mlirOperationSetOperand(asOperation(change.subject), change.index, {change.former});
    return;
  case Kind::Insert:
    fn.mlirOperationRemoveFromParent(asOperation(change.subject));
    fn.mlirOperationDestroy(asOperation(change.subject));
    return;
  case Kind::Move:
    fn.mlirOperationRemoveFromParent(asOperation(change.subject));
    fn.mlirBlockInsertOwnedOperationBefore(asBlock(change.where), asOperation(change.former),
                                           asOperation(change.subject));
    return;
  }
}

bool Rewriter::mayInvalidate(const Change &change) const {
  if (change.kind == Kind::Location || change.kind == Kind::ArgLocation)
    return false;
  if (change.kind != Kind::Attr)
    return true;
  Identifier name(MlirIdentifier{change.where});
  if (name == frontendAttributes_)
    return false;
  bool isPresent = Operation(asOperation(change.subject)).hasAttr(name.str());
  return isPresent || !isReservedKey(name.str());
}

bool Rewriter::verify(Operation root, size_t mark) const {
  return std::none_of(journal_.begin() + ptrdiff_t(mark), journal_.end(),
                      [&](const Change &change) { return mayInvalidate(change); }) ||
         root.verify();
}

void Rewriter::rollback() {
  for (; !journal_.empty(); journal_.pop_back())
    undo(journal_.back());
}

} // namespace hlotag::ir
