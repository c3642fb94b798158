// SPDX-License-Identifier: Apache-2.0
//
// Which equations does a program have, calls inlined, and which values do they take and make?
#pragma once

#include "table.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace hlotag::derivation {

using ValueId = uint32_t;
using EquationId = uint32_t;
using SiteId = uint32_t;
using PlaceId = uint32_t;
inline constexpr uint32_t kNone = ~uint32_t(0);

inline bool contains(const std::vector<ValueId> &values, ValueId value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

/// An equation of a jaxpr: the operations that it lowered to, under one chain of calls.
struct Equation {
  std::vector<ir::Operation> ops;
  std::vector<ValueId> ins, outs;
  TextId primitive = 0;
  PlaceId place = 0;
  SiteId site = kNone;        ///< the enclosing call, loop or conditional
  bool isDerived = false;     ///< emitted by a transpose
  bool isCopy = false;        ///< computed again, by jax.checkpoint
  bool hasResult = false;     ///< the last of `ops` computes the primitive's result
  bool isBeyondTable = false; ///< a derivative of a derivative, or a batched derivative
  const void *location = nullptr;
};

/// A call, a loop or a conditional.
struct Site {
  ir::Operation op;
  SiteId parent = kNone;
  PlaceId place = 0;
  uint32_t sourceKey = 0;
  TextId primitive = 0;
  bool isDerived = false, isCopy = false, isBeyondTable = false;
  std::vector<ValueId> ins, outs;
};

/// A value number. Values that are equal within one iteration of a loop share it: recomputed
/// copies, arguments and the operands of calls, slices of a stack and the values stacked. Each
/// cotangent has its own.
struct Value {
  const void *type = nullptr;
  bool isLinear = false;   ///< a cotangent, or computed from one
  bool isConstant = false; ///< computed from constants
  bool isFloat = false;
  // The operation and operands that computed it.
  ir::Identifier op;
  ValueId operands[2] = {kNone, kNone};
};

struct HashList {
  template <class T> size_t operator()(const std::vector<T> &list) const {
    size_t hash = list.size();
    for (uint64_t part : list)
      hash = (hash ^ (part >> 32) ^ part) * 0x9E3779B97F4A7C15u;
    return hash ^ (hash >> 32);
  }
};

class Equations {
public:
  Equations(const ir::OpList &operations, analysis::Provenance &provenance, const Table &table);

  std::vector<Equation> equations; ///< in the order in which they run
  std::vector<Site> sites;
  std::vector<Value> values;

private:
  /// The state of a walk through one function.
  struct Frame {
    ir::PointerMap<ValueId> numbers;
    PlaceId place = 0;
    SiteId site = kNone;
    std::vector<std::pair<ValueId, size_t>> branches; ///< enclosing branches: predicate and index
    size_t depth = 0;
  };
  using Ids = std::vector<ValueId>;

  void bind(ir::Block block, const Ids &numbers, Frame &frame);
  void runFunction(ir::Operation function, const Ids &arguments, Frame frame, Ids &results);
  void runBlock(ir::Block block, ir::Operation parent, Frame &frame, Ids &yields);
  void runOperation(ir::Operation op, const Ids &ins, const analysis::Origin &origin, Frame &frame);
  void runSite(ir::Operation op, const Ids &ins, const analysis::Origin &origin, Frame &frame);
  void runCall(ir::Operation op, const Ids &ins, SiteId site, const Frame &frame);
  void runRegions(ir::Operation op, const Ids &ins, SiteId site, Frame &frame);
  void runLoop(ir::Operation op, const Ids &ins, SiteId site, Frame &frame);
  void runBranches(ir::Operation op, const Ids &ins, SiteId site, Frame &frame);
  void addTo(ir::Operation op, const Ids &ins, const Ids &outs, const analysis::Origin &origin,
             const Frame &frame);
  Equation startOf(ir::Operation op, const analysis::Origin &origin, const Frame &frame);
  Ids rootsOf(const Ids &ins) const;
  Ids number(ir::Operation op, const Ids &ins, const analysis::Origin &origin, const Frame &frame);
  Ids numberComputed(ir::Operation op, const Ids &ins, TextId primitive);
  ValueId sliceMadeBy(ir::Operation op, const Ids &ins);
  void mergeExpanded();
  size_t lengthOf(const Expansion &expansion, size_t first) const;

  Ids operandsOf(ir::Operation op, Frame &frame);
  void bindResults(ir::Operation op, const Ids &outs, Frame &frame);
  ValueId numberOfConstant(ir::Operation op);
  bool isInDerived(const Frame &frame) const {
    return frame.site != kNone && sites[frame.site].isDerived;
  }
  bool isInCopy(const Frame &frame) const {
    return frame.site != kNone && sites[frame.site].isCopy;
  }
  bool isCopy(const analysis::Origin &origin, const Frame &frame) const {
    return isInCopy(frame) || origin.rematted;
  }
  bool isDerived(const analysis::Origin &origin, const Frame &frame) const {
    return (isInDerived(frame) || origin.transposed) && !isCopy(origin, frame);
  }
  ValueId newValue(ir::Value value, bool isLinear = false);
  ValueId numberOf(const std::vector<uint64_t> &key, ir::Value value);
  ValueId chosen(ValueId value, const Frame &frame) const;
  ValueId stackedIn(ValueId yielded, ValueId argument) const;
  PlaceId placeOf(PlaceId outer, const analysis::Origin &origin);
  bool isFloat(ir::Value value);
  bool isHigherOrder(const analysis::Origin &origin) const;
  bool isBatchedAfter(const analysis::Origin &origin) const;

  analysis::Provenance &provenance_;
  const Table &table_;
  ir::OpIds ids_;
  ir::Identifier barrier_, manual_, dynamicSlice_, dynamicUpdate_, reshape_, broadcast_, select_;
  size_t numLeft_; ///< budget of operations to visit
  std::unordered_map<std::vector<uint64_t>, ValueId, HashList> known_;
  ir::FlatMap<uint64_t, uint32_t> places_, localPlaces_;
  ir::PointerMap<bool> floats_;
  std::map<ValueId, ValueId> sliceOf_; ///< by stack: the slice in one iteration
  std::map<ValueId, ValueId> sliced_;  ///< by result of a dynamic slice: the reshaped slice
  std::map<ValueId, std::pair<ValueId, Ids>> branches_; ///< by result: predicate, yields
  std::map<ValueId, Ids> roots_;                        ///< by inner value: operands from outside
};

} // namespace hlotag::derivation
