// SPDX-License-Identifier: Apache-2.0
//
// What pairing needs to know of a module's operations, in arrays.
#pragma once

#include "arena_list.h"
#include "hlotag/analysis/provenance.h"
#include "pairing_rules.h"
#include "pairing_values.h"

#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

namespace hlotag::analysis {

using KeyId = uint32_t;

using NodeIds = ArenaList<NodeId>;
using TypeIds = ArenaList<TypeId>;
using ValueIds = ArenaList<ValueId>;

/// How differentiation was nested to make an operation: `t` (transposed) and `j` (jvp) letters,
/// outermost first. `jtj` is forward mode over a backward pass.
struct Order {
  TextId letters = 0;
  TextId level = 0; ///< up to the first `t`: cotangents come from the same level. 0: no `t`
  TextId base = 0;  ///< without the first `t`: the operations it was derived from
  TextId inner = 0; ///< all transforms after the first `t`, which the base has too
  bool isDerived = false;
  bool isReversed = false; ///< it runs through its base backwards
  size_t numBatched = 0;   ///< how often it was batched
};

/// An operation that may be paired: no terminator, nothing inside a reducer or comparator. Two
/// cache lines; what is looked at most is in the first.
struct alignas(64) Node {
  ir::Identifier name;
  const Order *order = nullptr;
  const void *trace = nullptr; ///< as in the origin
  TextId primitive = 0;        ///< that of the origin, or the one it was written out for
  KeyId key = 0;               ///< scope (relative to the function) and source line
  NodeId owner = kNone;   ///< the forward operation whose residual this is; itself if it is none
  NodeId follows = kNone; ///< the later operation of the same lowered equation that this serves
  NodeId primal = kNone;  ///< backward operations: what it was paired with
  float confidence = 0;
  NodeId last = 0;            ///< the last node nested in it; itself if there is none
  NodeId firstMember = kNone; ///< of an equation of several operations
  bool hasRegions = false;
  bool makesIntegers = false; ///< nothing else, and those have no derivative
  bool isShape = false;       ///< it only seems to bring what its owner works on into shape
  bool isOrphan = false;      ///< only the backward pass uses it: its equation may be dead code
  bool isTransposed = false, isCheckpointed = false, isRematted = false; ///< as in the origin

  const Origin *origin = nullptr;
  TypeIds takes; ///< of the equation's operands, before broadcasting too
  ValueId firstResult = kNone;
  uint32_t numResults = 0;
  uint32_t entry = 0;        ///< in the list of operations
  ValueId constant = kNone;  ///< a constant it combines its other operand with, if any
  RegionId region = kNone;   ///< that it is in
  NodeId nextMember = kNone; ///< of the same equation
  NodeId tangentOf = kNone;  ///< forward mode: the operation that this is the tangent of
  uint32_t place = 0;        ///< backward operations: where it is in its chain
  float agreed = 0;          ///< how sure it is that it stems from that or from a rival
  bool isRepeated = false;   ///< another equation computes the same, and one of them again
  bool isApart = false;      ///< a residual that may be another equation's, or none
};
static_assert(sizeof(void *) != 8 || sizeof(Node) == 128);

/// The operations of an equation, in order.
class Members {
public:
  class iterator {
  public:
    iterator(const Node *nodes, NodeId at) : nodes_(nodes), at_(at) {}
    NodeId operator*() const { return at_; }
    iterator &operator++() { return at_ = nodes_[at_].nextMember, *this; }
    bool operator!=(const iterator &other) const { return at_ != other.at_; }

  private:
    const Node *nodes_;
    NodeId at_;
  };
  Members(const Node *nodes, NodeId first) : nodes_(nodes), first_(first) {}
  iterator begin() const { return {nodes_, first_}; }
  iterator end() const { return {nodes_, kNone}; }

private:
  const Node *nodes_;
  NodeId first_;
};

/// What is asked for of a tensor type.
struct Shape {
  std::vector<std::string> parts; ///< the dimensions, and the element type last
  bool hasUnitDimension = false;
  bool isOfIntegers = false;
};

/// The nodes of a function, in order. Most steps concern few of them, which are listed: to go
/// through all of a large module takes longer than what is done with them.
struct FunctionNodes {
  ir::Operation function;
  RegionId body = kNone;
  NodeId begin = 0, end = 0;
  std::vector<NodeId> derived;   ///< transposed or recomputed
  std::vector<NodeId> calls;     ///< of functions
  std::vector<NodeId> continued; ///< the next node has the same origin
  std::vector<NodeId> followers; ///< of those, what follows() another
  std::vector<NodeId> expanded;  ///< their origin says so
  std::vector<NodeId> reshaped;  ///< they change a shape, as what makes their operand does
};

class PairingGraph {
public:
  PairingGraph(const ir::OpList &operations, Provenance &provenance);

  Arena arena;
  std::vector<Node> nodes;
  std::vector<FunctionNodes> functions;
  bool isHigherOrder = false; ///< something was derived from backward operations
  bool hasCheckpoint = false; ///< something is checkpointed or recomputed
  bool hasTwice = false;      ///< something was differentiated forward, twice
  /// By the primitives of a pair; see pairing_rules.h.
  ir::FlatMap<uint64_t, float> fits;
  ir::FlatMap<NodeId, NodeIds> rivals; ///< what else a node may stem from

  Provenance &provenance() { return provenance_; }
  const ir::OpIds &ids() const { return ids_; }
  ValueGraph &values() { return values_; }
  const Traits &traits(const Node &node);
  ir::Operation opOf(const Node &node) const { return operations_[node.entry].op; }
  /// The operation in whose region `node` is; kNone: it is in the function.
  NodeId parentOf(const Node &node) const { return values_.region(node.region).host; }
  NodeId nodeOfCall(ir::Operation call);
  Span<ValueId> operands(NodeId id) const { return values_.operands(id); }
  ValueRange results(NodeId id) const { return resultsOf(nodes[id]); }
  ValueRange resultsOf(const Node &node) const { return {node.firstResult, node.numResults}; }
  /// The types of its results.
  Span<TypeId> makes(const Node &node) const { return values_.typesOf(resultsOf(node)); }
  /// The region `number` of a loop or conditional; kNone if there is none.
  RegionId regionOf(NodeId host, size_t number) const;
  /// The node that makes `value`, looking through what only passes a value on; or kNone.
  NodeId definition(ValueId value) const { return values_.maker(values_.canonical(value)); }
  /// The value that `value` is a copy of in another shape, as batching makes them.
  ValueId root(ValueId value) const;
  /// `value`, or what a conditional that made it gives in the branch that `node` is in: a
  /// conditional in a backward pass has the branches of the one in the forward pass.
  ValueId inBranchOf(const Node &node, ValueId value) const;
  /// Whether an operation only gives its operand another shape or type.
  bool isShaping(const Node &node) const { return isShapingName(node.name) && !node.takes.empty(); }
  /// The attributes that say what `node` computes: those of other dialects are notes, and copies of
  /// a call may call copies.
  std::vector<const void *> attributesOf(const Node &node) const;
  /// Adds the places that `node` has where JAX took it out of a loop, as it does with what is the
  /// same in each iteration: the scopes around the loop are not said there.
  void addKeysOutside(const Node &node, std::vector<KeyId> &keys);
  /// The node that makes `value`, or what loops and calls around hand on as `value`; or kNone.
  NodeId makerAround(ValueId value);
  bool hasUnitDimension(TypeId type) { return shape(type).hasUnitDimension; }
  /// Whether two types are equal, or one is the other with up to so many dimensions more.
  bool isAlike(TypeId a, TypeId b, size_t numBatched);
  /// Whether a node broadcasts a zero.
  bool isZero(NodeId id);
  /// The operation that `node` was written out for, as a part of its region; or kNone.
  NodeId hostOf(const Node &node);
  const FunctionNodes *functionOf(const Node &call);
  const FunctionNodes &functionAround(NodeId id) const;
  /// Calls `visit` with what the operation works on: its operands, and what its regions use.
  template <class Visit> void forEachInput(NodeId id, Visit visit) {
    for (ValueId operand : operands(id))
      visit(operand);
    if (!nodes[id].hasRegions)
      return;
    if (const ValueIds *known = captured_.find(id))
      for (ValueId value : ValueIds(*known)) // `visit` may add to others
        visit(value);
  }
  /// An equation with its residuals and helpers.
  Members membersOf(NodeId equation) const {
    const Node &node = nodes[equation];
    bool isAlone = node.firstMember == kNone && node.owner == equation;
    return {nodes.data(), isAlone ? equation : node.firstMember};
  }

private:
  void addFunction(const ir::OpList &operations, size_t index);
  NodeId addNode(size_t entry, RegionId region);
  bool isShapingName(ir::Identifier name) const {
    return name == broadcast_ || name == reshape_ || name == transpose_ || name == convert_;
  }
  bool isControlFlow(ir::Identifier name) const;
  bool isTerminator(ir::Identifier name) const {
    return name == ids_.stablehloReturn || name == ids_.funcReturn || name == ids_.sdyReturn;
  }
  void addRegions(NodeId host);
  void addAliases(NodeId id);
  void list(NodeId id);
  void findCaptured(const std::vector<NodeId> &loops);
  void findFollowers(FunctionNodes &range);
  /// Whether there are any. `residualOf`: what each node may be a residual of, or kNone.
  bool findTangents(const FunctionNodes &range, const std::vector<NodeId> &residualOf);
  void findOwners(const FunctionNodes &range);
  void findExpanded(const FunctionNodes &range);
  void findShaped(const FunctionNodes &range);
  void findMembers(const FunctionNodes &range);
  const Order *orderOf(TextId transforms);
  void aliasToOperand(ValueId value, NodeId id);
  void aliasYielded(NodeId host);
  void aliasInvariants(NodeId loop);
  void aliasUnstacked(NodeId id);
  void aliasUnrolled(NodeId id);
  ValueId partOf(NodeId id, ir::Attribute begin, TypeId type);
  const Shape &shape(TypeId type);
  bool areIntegers(Span<TypeId> types);
  bool isRepeatOf(NodeId id, NodeId other);
  bool isApart(NodeId id, const std::vector<NodeId> &previous);
  bool isResidual(NodeId equation, NodeId later, const std::vector<NodeId> &owners);
  bool isOnlyResidual(NodeId node, NodeId equation);
  bool isResidualStack(NodeId update);
  bool isResidualUse(const Use &use, NodeId node, NodeId equation, int depth);

  const ir::OpList &operations_;
  Provenance &provenance_;
  ir::OpIds ids_;
  ir::Identifier barrier_, manualComputation_, broadcast_, dynamicSlice_, reshape_, transpose_,
      convert_, slice_, concatenate_, customCall_;
  std::vector<std::optional<Traits>> traits_; // by primitive
  std::unordered_map<TextId, Order> orders_;  // by transforms
  std::vector<NodeId> scratch_[3];            // by node
  std::vector<NodeId> lastOfKey_;             // of a function; scratch, too
  ValueGraph values_;
  ir::PointerMap<NodeId> calls_;          // by operation
  ir::FlatMap<NodeId, RegionId> regions_; // the first one of loops and conditionals
  std::vector<Shape> shapes_;             // by type
  ir::PointerMap<bool> isZero_;           // by attribute
  /// By stack, type, where the slice begins, its strides, and place.
  std::map<std::tuple<ValueId, TypeId, const void *, const void *, KeyId>, ValueId> slices_;
  ir::PointerMap<uint32_t> functionByOp_;
  ir::FlatMap<NodeId, ValueIds> captured_;    // what regions use from outside of it, up to a limit
  ir::FlatMap<uint64_t, unsigned> residuals_; // by two primitives
  ir::FlatMap<uint64_t, KeyId> keys_;
};

} // namespace hlotag::analysis
