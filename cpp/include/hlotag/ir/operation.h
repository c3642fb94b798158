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

/// A range over a chain of handles; the member `next` of the C API's table gives the one after,
/// null ends it.
template <class T, auto next> class ChainRange {
public:
  class iterator {
  public:
    explicit iterator(T at) : at_(at) {}
    const T &operator*() const { return at_; }
    const T *operator->() const { return &at_; }
    iterator &operator++() { return at_ = (capi::fn().*next)(at_.raw()), *this; }
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

/// One use of a value: the `number()`th operand of `owner()`.
class OpOperand : public Handle<OpOperand, MlirOpOperand> {
public:
  using Handle::Handle;
  inline Operation owner() const;
  unsigned number() const { return capi::fn().mlirOpOperandGetOperandNumber(raw_); }
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
  using Uses = ChainRange<OpOperand, &capi::Table::mlirOpOperandGetNextUse>;
  Uses uses() const { return Uses(capi::fn().mlirValueGetFirstUse(raw_)); }
};

class Operation : public Handle<Operation, MlirOperation> {
public:
  using Handle::Handle;

  MlirContext context() const { return capi::fn().mlirOperationGetContext(raw_); }
  Identifier name() const { return capi::fn().mlirOperationGetName(raw_); }
  Location location() const { return capi::fn().mlirOperationGetLocation(raw_); }
  inline Block block() const;
  Operation parent() const { return capi::fn().mlirOperationGetParentOperation(raw_); }
  Operation nextInBlock() const { return capi::fn().mlirOperationGetNextInBlock(raw_); }

  /// Returns the inherent or discardable attribute `name`, or null.
  Attribute attr(std::string_view name) const {
    return capi::fn().mlirOperationGetAttributeByName(raw_, toRef(name));
  }
  template <class T> T attrOf(std::string_view name) const { return dynCast<T>(attr(name)); }
  bool hasAttr(std::string_view name) const { return bool(attr(name)); }

  template <class T, auto size, auto at> using Range = NumberedRange<MlirOperation, T, size, at>;
  using Table = capi::Table;
  using Regions = Range<Region, &Table::mlirOperationGetNumRegions, &Table::mlirOperationGetRegion>;
  using Operands =
      Range<Value, &Table::mlirOperationGetNumOperands, &Table::mlirOperationGetOperand>;
  using Results = Range<Value, &Table::mlirOperationGetNumResults, &Table::mlirOperationGetResult>;
  using Attributes = Range<NamedAttribute, &Table::mlirOperationGetNumAttributes,
                           &Table::mlirOperationGetAttribute>;
  Regions regions() const { return Regions(raw_); }
  Operands operands() const { return Operands(raw_); }
  Results results() const { return Results(raw_); }
  /// Inherent and discardable attributes.
  Attributes attributes() const { return Attributes(raw_); }

  bool verify() const { return capi::fn().mlirOperationVerify(raw_); }
};

class Block : public Handle<Block, MlirBlock> {
public:
  using Handle::Handle;
  Block nextInRegion() const { return capi::fn().mlirBlockGetNextInRegion(raw_); }
  Operation parentOp() const { return capi::fn().mlirBlockGetParentOperation(raw_); }
  Operation firstOp() const { return capi::fn().mlirBlockGetFirstOperation(raw_); }
  /// The terminator; null if there is none, or if this is null.
  Operation terminator() const {
    bool hasOps = *this && firstOp();
    return hasOps ? Operation(capi::fn().mlirBlockGetTerminator(raw_)) : Operation();
  }
  /// Operand `number` of the terminator; null if there is none, or if this is null.
  inline Value findYielded(intptr_t number) const;

  using Operations = ChainRange<Operation, &capi::Table::mlirOperationGetNextInBlock>;
  using Arguments = NumberedRange<MlirBlock, Value, &capi::Table::mlirBlockGetNumArguments,
                                  &capi::Table::mlirBlockGetArgument>;
  Operations operations() const { return Operations(*this ? firstOp() : Operation()); }
  Arguments arguments() const { return Arguments(raw_); }
};

inline Value Block::findYielded(intptr_t number) const {
  Operation end = terminator();
  return end && number < end.operands().size() ? end.operands()[number] : Value();
}

class Region : public Handle<Region, MlirRegion> {
public:
  using Handle::Handle;
  using Blocks = ChainRange<Block, &capi::Table::mlirBlockGetNextInRegion>;
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
