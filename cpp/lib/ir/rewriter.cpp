// SPDX-License-Identifier: Apache-2.0
#include "hlotag/ir/rewriter.h"

#include "hlotag/ir/keys.h"

#include <algorithm>

namespace hlotag::ir {

namespace {

// The journal has untyped pointers.
MlirOperation asOperation(const void *pointer) { return {const_cast<void *>(pointer)}; }

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
  journal_.push_back({Kind::Attr, op.opaque(), present.opaque(), name.opaque()});
  writeAttr(op.raw(), name.raw(), value.raw());
  return true;
}

bool Rewriter::setLocation(Operation op, Location location) {
  Location present = op.location();
  if (present == location)
    return false;
  journal_.push_back({Kind::Location, op.opaque(), present.opaque(), nullptr});
  capi::fn().mlirOperationSetLocation(op.raw(), location.raw());
  return true;
}

void Rewriter::setLocation(Value blockArgument, Location location) {
  Location former = blockArgument.location();
  if (former == location)
    return;
  journal_.push_back({Kind::ArgLocation, blockArgument.opaque(), former.opaque(), nullptr});
  capi::fn().mlirBlockArgumentSetLocation(blockArgument.raw(), location.raw());
}

Operation Rewriter::insert(OwnedOperation op, Block block, Operation before) {
  ++numInsertions_;
  journal_.push_back({Kind::Insert, op.get().opaque(), nullptr, nullptr});
  Operation inserted = op.release();
  capi::fn().mlirBlockInsertOwnedOperationBefore(block.raw(), before.raw(), inserted.raw());
  return inserted;
}

void Rewriter::undo(const Change &change) {
  const capi::Table &fn = capi::fn();
  switch (change.kind) {
  case Kind::Attr:
    writeAttr(asOperation(change.subject), {change.name}, {change.former});
    return;
  case Kind::Location:
    fn.mlirOperationSetLocation(asOperation(change.subject), {change.former});
    return;
  case Kind::ArgLocation:
    fn.mlirBlockArgumentSetLocation({change.subject}, {change.former});
    return;
  case Kind::Insert:
    ++numInsertions_;
    fn.mlirOperationRemoveFromParent(asOperation(change.subject));
    fn.mlirOperationDestroy(asOperation(change.subject));
    return;
  }
}

bool Rewriter::mayInvalidate(const Change &change) const {
  if (change.kind == Kind::Location || change.kind == Kind::ArgLocation)
    return false;
  if (change.kind != Kind::Attr)
    return true;
  Identifier name(MlirIdentifier{change.name});
  if (name == frontendAttributes_)
    return false;
  bool isPresent = Operation(asOperation(change.subject)).hasAttr(name.str());
  return isPresent || !isReservedKey(name.str());
}

bool Rewriter::verify(Operation root) const {
  return std::none_of(journal_.begin(), journal_.end(),
                      [&](const Change &change) { return mayInvalidate(change); }) ||
         root.verify();
}

void Rewriter::rollback() {
  for (; !journal_.empty(); journal_.pop_back())
    undo(journal_.back());
}

} // namespace hlotag::ir
