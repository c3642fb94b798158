// SPDX-License-Identifier: Apache-2.0
//
// What pairing needs to know of a module's operations, in arrays.
#pragma once

#include "arena_list.h"
#include "hlotag/analysis/provenance.h"
#include "pairing_rules.h"

#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

namespace hlotag::analysis {

using NodeId = uint32_t;
using KeyId = uint32_t;
inline constexpr NodeId kNone = ~NodeId(0);

using NodeIds = ArenaList<NodeId>;
using Types = ArenaList<const void *>;
using Values = ArenaList<ir::Value>;

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
  ir::Operation op;
  ir::Identifier name; ///< that of `op`
  const Origin *origin = nullptr;
  const Order *order = nullptr;
  TextId primitive = 0;   ///< that of the origin, or the one it was written out for
  KeyId key = 0;          ///< scope (relative to the function) and source line
  NodeId owner = kNone;   ///< the forward operation whose residual this is; itself if it is none
  NodeId follows = kNone; ///< the later operation of the same lowered equation that this serves
  NodeId primal = kNone;  ///< backward operations: what it was paired with
  float confidence = 0;
  bool hasRegions = false;
  bool isRepeated = false; ///< another equation computes the same, and one of them again
  bool isShape = false;    ///< it only seems to bring what its owner works on into shape
  bool isOrphan = false;   ///< only the backward pass uses it: its equation may be dead code
  bool isApart = false;    ///< a residual that may be another equation's, or none

  Types takes;                    ///< of the equation's operands, before broadcasting too
  Types makes;                    ///< of its results
  const void *constant = nullptr; ///< a constant it combines its other operand with, if any
  NodeId parent = kNone;    ///< the operation that it is in a region of; none: in the function
  NodeId last = 0;          ///< the last node nested in it; itself if there is none
  NodeId tangentOf = kNone; ///< forward mode: the operation that this is the tangent of
  uint32_t place = 0;       ///< backward operations: where it is in its chain
  float agreed = 0;         ///< how sure it is that it stems from that or from a rival
};
static_assert(sizeof(void *) != 8 || sizeof(Node) == 128);

struct NodeRange {
  const NodeId *first, *last;
  const NodeId *begin() const { return first; }
  const NodeId *end() const { return last; }
};

/// The nodes of a function, in order.
struct FunctionNodes {
  ir::Operation function;
  NodeId begin = 0, end = 0;
};

class PairingGraph {
public:
  PairingGraph(const ir::OpList &operations, Provenance &provenance);

  Arena arena;
  std::vector<Node> nodes;
  std::vector<FunctionNodes> functions;
  bool isHigherOrder = false; ///< something was derived from backward operations
  /// By the primitives of a pair; see pairing_rules.h.
  ir::FlatMap<uint64_t, float> fits;
  ir::FlatMap<NodeId, NodeIds> rivals; ///< what else a node may stem from

  Provenance &provenance() { return provenance_; }
  const ir::OpIds &ids() const { return ids_; }
  const Traits &traits(const Node &node);
  NodeId nodeOf(ir::Operation op);
  /// The node that makes `value`, looking through what only passes a value on; or kNone.
  NodeId definition(ir::Value value);
  /// `value`, or what it is a copy of.
  ir::Value canonical(ir::Value value);
  /// The value that `value` is a copy of in another shape, as batching makes them.
  ir::Value root(ir::Value value);
  /// `value`, or what a conditional that made it gives in the branch that `op` is in: a conditional
  /// in a backward pass has the branches of the one in the forward pass.
  ir::Value inBranchOf(ir::Operation op, ir::Value value);
  /// The number of the region of its parent that `op` is in.
  static size_t regionOf(ir::Operation op);
  void setAlias(ir::Value copy, ir::Value original);
  /// Whether an operation only gives its operand another shape or type.
  bool isShaping(const Node &node) const { return isShapingName(node.name) && !node.takes.empty(); }
  /// The attributes that say what `node` computes: those of other dialects are notes, and copies of
  /// a call may call copies.
  std::vector<const void *> attributesOf(const Node &node) const;
  bool hasUnitDimension(const void *type);
  /// Whether two types are equal, or one is the other with up to so many dimensions more.
  bool isAlike(const void *a, const void *b, size_t numBatched);
  /// Whether `node` broadcasts a zero.
  bool isZero(const Node &node);
  /// The operation that `node` was written out for, as a part of its region; or kNone.
  NodeId hostOf(const Node &node);
  const FunctionNodes *functionOf(const Node &call);
  /// Calls `visit` with what the operation works on: its operands, and what its regions use.
  template <class Visit> void forEachInput(NodeId id, Visit visit) {
    for (ir::Value operand : nodes[id].op.operands())
      visit(operand);
    if (!nodes[id].hasRegions)
      return;
    if (const Values *known = captured_.find(id))
      for (ir::Value value : Values(*known)) // `visit` may add to others
        visit(value);
  }
  /// An equation with its residuals and helpers.
  NodeRange membersOf(NodeId equation);

private:
  void addFunction(const ir::OpList &operations, size_t index);
  void addConstant(ir::Operation op);
  NodeId addNode(const ir::OpList::Entry &entry, NodeId parent);
  bool isShapingName(ir::Identifier name) const {
    return name == broadcast_ || name == reshape_ || name == transpose_ || name == convert_;
  }
  bool isControlFlow(ir::Identifier name) const;
  void addAliases(const Node &node);
  void findCaptured(const FunctionNodes &range);
  void findFollowers(const FunctionNodes &range);
  /// Whether there are any. `residualOf`: what each node may be a residual of, or kNone.
  bool findTangents(const FunctionNodes &range, const std::vector<NodeId> &residualOf);
  void findOwners(const FunctionNodes &range);
  void findExpanded(const FunctionNodes &range);
  void findShaped(const FunctionNodes &range);
  const Order *orderOf(TextId transforms);
  void aliasToOperand(ir::Value value, ir::Operation op);
  void aliasInvariants(ir::Operation loop);
  void aliasUnstacked(const Node &node);
  const std::vector<std::string> &shape(const void *type);
  bool isApart(NodeId id, const std::vector<NodeId> &previous);
  bool isResidual(NodeId equation, NodeId later, const std::vector<NodeId> &owners);
  bool isOnlyResidual(NodeId node, NodeId equation);
  bool isResidualStack(const Node &update);
  bool isResidualUse(ir::OpOperand use, NodeId node, NodeId equation, int depth);

  Provenance &provenance_;
  ir::OpIds ids_;
  ir::Identifier barrier_, manualComputation_, broadcast_, dynamicSlice_, reshape_, transpose_,
      convert_, customCall_;
  std::vector<std::optional<Traits>> traits_;  // by primitive
  std::unordered_map<TextId, Order> orders_;   // by transforms
  std::vector<NodeId> scratch_[3];             // by node
  std::vector<NodeId> lastOfKey_;              // of a function; scratch, too
  std::vector<NodeId> members_, membersBegin_; // by owner; where those of a node begin
  ir::PointerMap<NodeId> nodeByOp_;
  ir::PointerMap<MlirValue> aliases_;
  ir::PointerMap<ir::Value> constants_;                               // by value: the first of each
  ir::PointerMap<std::vector<std::string>> shapes_;                   // by type
  ir::PointerMap<bool> isZero_;                                       // by attribute
  std::map<std::pair<const void *, const void *>, ir::Value> slices_; // by stack and type
  ir::PointerMap<uint32_t> functionByOp_;
  ir::FlatMap<NodeId, Values> captured_;      // what regions use from outside of it, up to a limit
  ir::FlatMap<uint64_t, unsigned> residuals_; // by two primitives
  ir::FlatMap<uint64_t, KeyId> keys_;
};

} // namespace hlotag::analysis
