// SPDX-License-Identifier: Apache-2.0
//
// What pairing needs to know of a module's operations, in arrays.
#pragma once

#include "hlotag/analysis/provenance.h"

#include <unordered_map>
#include <vector>

namespace hlotag::analysis {

using NodeId = uint32_t;
using KeyId = uint32_t;
inline constexpr NodeId kNone = ~NodeId(0);

/// An operation that may be paired: no terminator, nothing inside a reducer or comparator.
struct Node {
  ir::Operation op;
  const Origin *origin = nullptr;
  KeyId key = 0;          ///< scope (relative to the function) and source line
  NodeId owner = kNone;   ///< the forward operation whose residual this is; itself if it is none
  NodeId follows = kNone; ///< the later operation of the same lowered equation that this serves
  std::vector<const void *> takes; ///< types of the equation's operands, before broadcasting too
  std::vector<const void *> makes; ///< types of its results
  const void *constant = nullptr;  ///< a constant it combines its other operand with, if any
  NodeId last = 0;                 ///< the last node nested in it; itself if there is none
  NodeId primal = kNone;           ///< backward operations: what it was paired with
  float confidence = 0;
};

/// The nodes of a function, in order.
struct FunctionNodes {
  ir::Operation function;
  NodeId begin = 0, end = 0;
};

class PairingGraph {
public:
  PairingGraph(ir::Operation module, Provenance &provenance);

  std::vector<Node> nodes;
  std::vector<FunctionNodes> functions;
  /// By the primitives of a pair; see pairing_rules.h.
  std::unordered_map<uint64_t, float> fits;

  Provenance &provenance() { return provenance_; }
  const ir::OpIds &ids() const { return ids_; }
  NodeId nodeOf(ir::Operation op);
  /// The node that makes `value`, looking through what only passes a value on; or kNone.
  NodeId definition(ir::Value value);
  /// `value`, or what it is a copy of.
  ir::Value canonical(ir::Value value);
  void setAlias(ir::Value copy, ir::Value original);
  const FunctionNodes *functionOf(ir::Operation call);

private:
  void addFunction(ir::Operation function);
  void findFollowers(const FunctionNodes &range);
  void findOwners(const FunctionNodes &range);
  void aliasInvariants(ir::Operation loop);
  void aliasUnstacked(ir::Operation op);
  bool sharesValue(NodeId equation, NodeId later);
  bool isOnlyResidual(NodeId node);
  bool isResidualUse(ir::OpOperand use, NodeId node, int depth);

  Provenance &provenance_;
  ir::OpIds ids_;
  ir::Identifier barrier_, manualComputation_, broadcast_, dynamicSlice_;
  ir::PointerMap<NodeId> nodeByOp_;
  ir::PointerMap<MlirValue> aliases_;
  ir::PointerMap<uint32_t> functionByOp_;
  std::unordered_map<uint64_t, KeyId> keys_;
};

} // namespace hlotag::analysis
