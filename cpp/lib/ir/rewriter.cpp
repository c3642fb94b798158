// SPDX-License-Identifier: Apache-2.0
#include "hlotag/ir/rewriter.h"

#include "hlotag/ir/flat_map.h"
#include "hlotag/ir/keys.h"
#include "hlotag/ir/walk.h"

#include <algorithm>

namespace hlotag::ir {

namespace {

// The journal keeps plain pointers; these give them their types back.
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

/// Whether verifying `op`, which verifies its body, is better done for the whole module once.
bool hasLargeBody(Operation op) {
  if (op.regions().empty())
    return false;
  size_t numNested = 0;
  walk(op,
       [&](Operation) { return ++numNested < 8 ? WalkResult::Advance : WalkResult::Interrupt; });
  return numNested >= 8;
}

Operation rootOf(Operation op) {
  while (Operation parent = op.parent())
    op = parent;
  return op;
}

} // namespace

Rewriter::Rewriter(MlirContext context)
    : context_(context), frontendAttributes_(Identifier::get(context, kFrontendAttributes)) {}

bool Rewriter::setAttr(Operation op, Identifier name, Attribute value) {
  return replaceAttr(op, name, op.attr(name.str()), value);
}

bool Rewriter::replaceAttr(Operation op, Identifier name, Attribute present, Attribute value) {
  if (present == value)
    return false;
  record(Kind::Attr, op.opaque(), name.opaque(), present.opaque());
  writeAttr(op.raw(), name.raw(), value.raw());
  return true;
}

bool Rewriter::replaceLocation(Operation op, Location present, Location location) {
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

void Rewriter::erase(Operation op) {
  Operation root = rootOf(op);
  for (Value result : op.results())
    for (OpOperand use : result.uses())
      // A user under another root was erased before; it goes first on commit.
      if (rootOf(use.owner()) == root)
        throw IRError(op.location().raw(), "cannot erase '" + std::string(op.name().str()) +
                                               "': its results are still used");
  record(Kind::Erase, op.opaque(), op.block().opaque(), op.nextInBlock().opaque());
  capi::fn().mlirOperationRemoveFromParent(op.raw());
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
    [[fallthrough]];
  case Kind::Erase:
    fn.mlirBlockInsertOwnedOperationBefore(asBlock(change.where), asOperation(change.former),
                                           asOperation(change.subject));
    return;
  }
}

bool Rewriter::verify(Operation root, size_t mark) const {
  PointerMap<bool> verified;
  for (auto i = std::lower_bound(toVerify_.begin(), toVerify_.end(), mark); i != toVerify_.end();
       ++i) {
    const Change &change = journal_[*i];
    if (change.kind != Kind::Attr)
      return root.verify();
    Operation op(asOperation(change.subject));
    std::string_view name = Identifier(MlirIdentifier{change.where}).str();
    if (isReservedKey(name) && !op.attr(name))
      continue;
    // An attribute without a dialect's prefix is part of what the operation means, e.g. a callee.
    bool isDiscardable = name.find('.') != std::string_view::npos;
    if (!isDiscardable || hasLargeBody(op))
      return root.verify();
    if (verified.insert(op.opaque()).second && !op.verify())
      return false;
  }
  return true;
}

void Rewriter::rollback(size_t mark) {
  while (journal_.size() > mark) {
    undo(journal_.back());
    journal_.pop_back();
  }
  while (!toVerify_.empty() && toVerify_.back() >= journal_.size())
    toVerify_.pop_back();
}

void Rewriter::commit() {
  // Oldest first: an operation that used another one was erased before it.
  for (size_t i : toVerify_)
    if (const Change &change = journal_[i]; change.kind == Kind::Erase)
      capi::fn().mlirOperationDestroy(asOperation(change.subject));
  journal_.clear();
  toVerify_.clear();
}

} // namespace hlotag::ir
