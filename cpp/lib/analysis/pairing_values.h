// SPDX-License-Identifier: Apache-2.0
//
// What makes and what uses each value, as numbers in arrays: MLIR's own links lead all over memory,
// and each step of pairing follows them.
#pragma once

#include "arena_list.h"
#include "hlotag/ir/flat_map.h"
#include "hlotag/ir/op_list.h"

#include <vector>

namespace hlotag::analysis {

using NodeId = uint32_t;
using ValueId = uint32_t;
using RegionId = uint32_t;
using TypeId = uint32_t;
inline constexpr uint32_t kNone = ~uint32_t(0);

/// A part of an array.
template <class T> class Span {
public:
  Span(const T *begin, const T *end) : begin_(begin), end_(end) {}
  Span(const ArenaList<T> &list) : begin_(list.begin()), end_(list.end()) {}
  const T *begin() const { return begin_; }
  const T *end() const { return end_; }
  size_t size() const { return size_t(end_ - begin_); }
  bool empty() const { return begin_ == end_; }
  const T &operator[](size_t index) const { return begin_[index]; }
  bool operator==(const Span &other) const {
    return std::equal(begin_, end_, other.begin_, other.end_);
  }
  bool operator!=(const Span &other) const { return !(*this == other); }

private:
  const T *begin_, *end_;
};

/// Values in a row: the results of a node, or the arguments of a region.
class ValueRange {
public:
  class iterator {
  public:
    explicit iterator(ValueId at) : at_(at) {}
    ValueId operator*() const { return at_; }
    iterator &operator++() { return ++at_, *this; }
    bool operator!=(const iterator &other) const { return at_ != other.at_; }

  private:
    ValueId at_;
  };
  ValueRange(ValueId first, size_t size) : first_(first), size_(uint32_t(size)) {}
  iterator begin() const { return iterator(first_); }
  iterator end() const { return iterator(first_ + size_); }
  size_t size() const { return size_; }
  ValueId operator[](size_t index) const { return first_ + ValueId(index); }

private:
  ValueId first_;
  uint32_t size_;
};

/// One use of a value: as the operand `number` of `user`, or, if that is kNone, by the terminator
/// of a region: see yield().
struct Use {
  NodeId user;
  uint32_t number;
};

/// What the terminator of `region` hands on as its operand `number`.
struct Yield {
  ValueId value;
  RegionId region;
  uint32_t number;
};

class ValueGraph {
public:
  /// The body of a function, or a region of a node.
  struct Region {
    ir::Block block;
    NodeId host;     ///< kNone: a function
    uint32_t number; ///< among those of its host
    ValueId firstArgument;
    uint32_t numArguments;
    uint32_t yieldsBegin, yieldsEnd;
  };

  // To be called in the order of the module, and seal() at the end.
  void reserve(size_t numOperations);
  /// Those of the next node.
  void addOperands(ir::Operation::Operands operands);
  ValueRange addResults(ir::Operation::Results results, NodeId maker);
  RegionId addRegion(ir::Block block, NodeId host, uint32_t number);
  void addYields(RegionId region, ir::Operation terminator);
  /// Equal constants are one value, so that recomputed operations have equal operands.
  void addConstant(ir::Operation op);
  void seal();

  Span<ValueId> operands(NodeId node) const {
    return {operands_.data() + operandsBegin_[node], operands_.data() + operandsBegin_[node + 1]};
  }
  Span<Use> uses(ValueId value) const {
    return {uses_.data() + usesBegin_[value], uses_.data() + usesBegin_[value + 1]};
  }
  Span<Yield> yields(RegionId region) const {
    return {yields_.data() + regions_[region].yieldsBegin,
            yields_.data() + regions_[region].yieldsEnd};
  }
  const Yield &yield(const Use &use) const { return yields_[use.number]; }
  /// What the terminator of `region` hands on as its operand `number`; kNone if there is none.
  ValueId yielded(RegionId region, size_t number) const {
    return number < yields(region).size() ? yields(region)[number].value : kNone;
  }
  const Region &region(RegionId region) const { return regions_[region]; }
  size_t numRegions() const { return regions_.size(); }
  ValueRange arguments(RegionId region) const {
    return {regions_[region].firstArgument, regions_[region].numArguments};
  }

  /// The node whose result it is; or kNone.
  NodeId maker(ValueId value) const { return isArgument(value) ? kNone : values_[value].from; }
  /// Its place among the results of its node or the arguments of its region.
  uint32_t number(ValueId value) const { return values_[value].number; }
  /// The region whose argument it is; or kNone.
  RegionId regionOf(ValueId value) const { return isArgument(value) ? values_[value].from : kNone; }
  bool isArgument(ValueId value) const { return values_[value].isArgument; }
  TypeId typeOf(ValueId value) const { return types_[value]; }
  Span<TypeId> typesOf(ValueRange values) const {
    return {types_.data() + values[0], types_.data() + values[values.size()]};
  }
  /// MLIR's types, by number.
  const std::vector<const void *> &types() const { return distinctTypes_; }
  /// What is no argument and no node makes is constant.
  bool isConstant(ValueId value) const { return values_[value].from == kNone; }
  /// That of a `stablehlo.constant`, or null.
  ir::Attribute constant(ValueId value) const {
    bool isKnown = isConstant(value) && number(value) < constants_.size();
    return isKnown ? constants_[number(value)] : ir::Attribute();
  }

  /// `value`, or what it is a copy of.
  ValueId canonical(ValueId value) const {
    // Aliases of arguments are learnt after those of what they are handed on as.
    while (values_[value].original != value)
      value = values_[value].original;
    return value;
  }
  bool isCopy(ValueId value) const { return values_[value].original != value; }
  void setAlias(ValueId copy, ValueId original) {
    if (canonical(original) != canonical(copy))
      values_[copy].original = canonical(original);
  }

private:
  struct Value {
    ValueId original;        ///< what it is a copy of; itself if of nothing
    uint32_t from;           ///< the node that makes it, or the region; kNone: it is constant
    uint32_t isArgument : 1; ///< of a region
    uint32_t number : 31;    ///< of a constant: in `constants_`
  };
  static constexpr uint32_t kUnknown = ~uint32_t(0) >> 1;

  ValueId add(ir::Value value, uint32_t from, uint32_t number, bool isArgument = false);
  /// The number of a value; one that nothing was added for is taken for constant.
  ValueId idOf(ir::Value value);

  std::vector<Value> values_;
  std::vector<TypeId> types_; // by value
  std::vector<const void *> distinctTypes_;
  ir::PointerMap<TypeId> typeIds_;
  std::vector<ValueId> operands_;
  std::vector<uint32_t> operandsBegin_{0}; // by node
  std::vector<Use> uses_;
  std::vector<uint32_t> usesBegin_; // by value
  std::vector<Yield> yields_;
  std::vector<Region> regions_;
  std::vector<ir::Attribute> constants_;
  ir::PointerMap<ValueId> firstConstants_; // by attribute
  ir::PointerMap<ValueId> ids_;            // until sealed
};

} // namespace hlotag::analysis
