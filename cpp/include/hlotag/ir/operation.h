// SPDX-License-Identifier: Apache-2.0
//
// How are operations, regions, blocks and values read? Views cannot change them; Rewriter does.
#pragma once

#include "hlotag/ir/attributes.h"
#include "hlotag/ir/location.h"

#include <memory>
#include <vector>

namespace hlotag::ir {

class Block;
class Operation;
class Region;
class Value;

/// A range over a chain of handles; `Next` gives the one after, null ends it.
template <class T, T (*Next)(const T &)> class ChainRange {
public:
  class iterator {
  public:
    explicit iterator(T at) : at_(at) {}
    const T &operator*() const { return at_; }
    const T *operator->() const { return &at_; }
    iterator &operator++() { return at_ = Next(at_), *this; }
    bool operator!=(const iterator &other) const { return at_ != other.at_; }

  private:
    T at_;
  };
  explicit ChainRange(T first) : first_(first) {}
  iterator begin() const { return iterator(first_); }
  iterator end() const { return iterator(T()); }
  bool empty() const { return !first_; }

private:
  T first_;
};

/// A range over the numbered parts of an operation or block: regions, operands, arguments, ...
template <class Owner, class T, intptr_t (*Size)(const Owner &), T (*At)(const Owner &, intptr_t)>
class NumberedRange {
public:
  explicit NumberedRange(Owner owner) : owner_(owner), size_(Size(owner)) {}
  intptr_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T operator[](intptr_t index) const { return At(owner_, index); }
  IndexIterator<NumberedRange> begin() const { return {this, 0}; }
  IndexIterator<NumberedRange> end() const { return {this, size_}; }

private:
  Owner owner_;
  intptr_t size_;
};

/// One use of a value: the `number()`th operand of `owner()`.
class OpOperand : public Handle<OpOperand, MlirOpOperand> {
public:
  using Handle::Handle;
  inline Operation owner() const;
  unsigned number() const { return capi::fn().mlirOpOperandGetOperandNumber(raw_); }
  static OpOperand next(const OpOperand &use) {
    return capi::fn().mlirOpOperandGetNextUse(use.raw());
  }
};

class Value : public Handle<Value, MlirValue> {
public:
  using Handle::Handle;
  bool isBlockArgument() const { return capi::fn().mlirValueIsABlockArgument(raw_); }
  bool isResult() const { return !isBlockArgument(); }
  MlirType type() const { return capi::fn().mlirValueGetType(raw_); }
  /// The dimensions of a tensor, negative where dynamic; empty for scalars and other types.
  std::vector<int64_t> shape() const {
    std::vector<int64_t> sizes;
    if (capi::fn().mlirTypeIsAShaped(type()) && capi::fn().mlirShapedTypeHasRank(type()))
      for (int64_t i = 0, rank = capi::fn().mlirShapedTypeGetRank(type()); i < rank; ++i)
        sizes.push_back(capi::fn().mlirShapedTypeGetDimSize(type(), i));
    return sizes;
  }
  Location location() const { return capi::fn().mlirValueGetLocation(raw_); }
  /// The operation with this result; null for a block argument.
  inline Operation definingOp() const;
  /// The block with this argument; null for a result.
  inline Block ownerBlock() const;
  /// The index among the results of its operation or the arguments of its block.
  intptr_t number() const {
    return isResult() ? capi::fn().mlirOpResultGetResultNumber(raw_)
                      : capi::fn().mlirBlockArgumentGetArgNumber(raw_);
  }
  ChainRange<OpOperand, OpOperand::next> uses() const {
    return ChainRange<OpOperand, OpOperand::next>(capi::fn().mlirValueGetFirstUse(raw_));
  }
};

class Operation : public Handle<Operation, MlirOperation> {
  static intptr_t numRegions(const Operation &op) {
    return capi::fn().mlirOperationGetNumRegions(op.raw());
  }
  static inline Region regionAt(const Operation &op, intptr_t index);
  static intptr_t numOperands(const Operation &op) {
    return capi::fn().mlirOperationGetNumOperands(op.raw());
  }
  static Value operandAt(const Operation &op, intptr_t index) {
    return capi::fn().mlirOperationGetOperand(op.raw(), index);
  }
  static intptr_t numResults(const Operation &op) {
    return capi::fn().mlirOperationGetNumResults(op.raw());
  }
  static Value resultAt(const Operation &op, intptr_t index) {
    return capi::fn().mlirOperationGetResult(op.raw(), index);
  }
  static intptr_t numAttributes(const Operation &op) {
    return capi::fn().mlirOperationGetNumAttributes(op.raw());
  }
  static NamedAttribute attributeAt(const Operation &op, intptr_t index) {
    MlirNamedAttribute entry = capi::fn().mlirOperationGetAttribute(op.raw(), index);
    return {entry.name, entry.attribute};
  }

public:
  using Handle::Handle;

  MlirContext context() const { return capi::fn().mlirOperationGetContext(raw_); }
  Identifier name() const { return capi::fn().mlirOperationGetName(raw_); }
  Location location() const { return capi::fn().mlirOperationGetLocation(raw_); }
  inline Block block() const;
  Operation parent() const { return capi::fn().mlirOperationGetParentOperation(raw_); }
  Operation nextInBlock() const { return capi::fn().mlirOperationGetNextInBlock(raw_); }
  static Operation next(const Operation &op) { return op.nextInBlock(); }

  /// Returns the inherent or discardable attribute `name`, or null.
  Attribute attr(std::string_view name) const {
    return capi::fn().mlirOperationGetAttributeByName(raw_, toRef(name));
  }
  template <class T> T attrOf(std::string_view name) const { return dynCast<T>(attr(name)); }
  bool hasAttr(std::string_view name) const { return bool(attr(name)); }

  using Regions = NumberedRange<Operation, Region, numRegions, regionAt>;
  using Operands = NumberedRange<Operation, Value, numOperands, operandAt>;
  using Results = NumberedRange<Operation, Value, numResults, resultAt>;
  using Attributes = NumberedRange<Operation, NamedAttribute, numAttributes, attributeAt>;
  Regions regions() const { return Regions(*this); }
  Operands operands() const { return Operands(*this); }
  Results results() const { return Results(*this); }
  /// Inherent and discardable attributes.
  Attributes attributes() const { return Attributes(*this); }

  bool verify() const { return capi::fn().mlirOperationVerify(raw_); }
};

class Block : public Handle<Block, MlirBlock> {
  static intptr_t numArguments(const Block &block) {
    return capi::fn().mlirBlockGetNumArguments(block.raw());
  }
  static Value argumentAt(const Block &block, intptr_t index) {
    return capi::fn().mlirBlockGetArgument(block.raw(), index);
  }

public:
  using Handle::Handle;
  static Block next(const Block &block) { return capi::fn().mlirBlockGetNextInRegion(block.raw()); }
  Operation parentOp() const { return capi::fn().mlirBlockGetParentOperation(raw_); }
  Operation firstOp() const { return capi::fn().mlirBlockGetFirstOperation(raw_); }
  /// The terminator; null if there is none, or if this is null.
  Operation terminator() const {
    bool hasOps = *this && firstOp();
    return hasOps ? Operation(capi::fn().mlirBlockGetTerminator(raw_)) : Operation();
  }
  /// Operand `number` of the terminator; null if there is none, or if this is null.
  inline Value findYielded(intptr_t number) const;

  using Operations = ChainRange<Operation, Operation::next>;
  using Arguments = NumberedRange<Block, Value, numArguments, argumentAt>;
  Operations operations() const { return Operations(*this ? firstOp() : Operation()); }
  Arguments arguments() const { return Arguments(*this); }
};

inline Value Block::findYielded(intptr_t number) const {
  Operation end = terminator();
  return end && number < end.operands().size() ? end.operands()[number] : Value();
}

class Region : public Handle<Region, MlirRegion> {
public:
  using Handle::Handle;
  using Blocks = ChainRange<Block, Block::next>;
  Block firstBlock() const { return capi::fn().mlirRegionGetFirstBlock(raw_); }
  Blocks blocks() const { return Blocks(firstBlock()); }
  bool empty() const { return !firstBlock(); }
};

inline Operation OpOperand::owner() const { return capi::fn().mlirOpOperandGetOwner(raw_); }
inline Operation Value::definingOp() const {
  return isResult() ? Operation(capi::fn().mlirOpResultGetOwner(raw_)) : Operation();
}
inline Block Value::ownerBlock() const {
  return isBlockArgument() ? Block(capi::fn().mlirBlockArgumentGetOwner(raw_)) : Block();
}
inline Region Operation::regionAt(const Operation &op, intptr_t index) {
  return capi::fn().mlirOperationGetRegion(op.raw(), index);
}
inline Block Operation::block() const { return capi::fn().mlirOperationGetBlock(raw_); }

/// Owns an operation that is in no block.
class OwnedOperation {
public:
  explicit OwnedOperation(MlirOperation op) : op_(op.ptr) {}
  static OwnedOperation clone(Operation op) {
    return OwnedOperation(capi::fn().mlirOperationClone(op.raw()));
  }

  Operation get() const { return MlirOperation{op_.get()}; }
  MlirOperation release() { return {op_.release()}; }

private:
  struct Destroy {
    void operator()(void *op) const { capi::fn().mlirOperationDestroy({op}); }
  };
  std::unique_ptr<void, Destroy> op_;
};

} // namespace hlotag::ir
