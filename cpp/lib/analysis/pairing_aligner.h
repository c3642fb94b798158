// SPDX-License-Identifier: Apache-2.0
//
// Pairs the operations of two functions, or of one with itself.
#pragma once

#include "pairing_graph.h"

#include <algorithm>

namespace hlotag::analysis {

/// What speaks for certain forward nodes, besides their key.
struct Evidence {
  std::vector<std::pair<NodeId, float>> weights;
  std::vector<std::pair<NodeId, float>> links; ///< the part that neighbours' pairs contribute
  bool isBatched = false;
  bool hasCotangent = false;
  std::vector<NodeId>
      inner;             ///< what the pairs of backward operands at the same place are, or kNone
  NodeId latest = kNone; ///< the last backward node among the operands

  void add(NodeId node, float weight) {
    for (auto &[known, best] : weights)
      if (known == node) {
        best = std::max(best, weight);
        return;
      }
    weights.emplace_back(node, weight);
  }
  float of(NodeId node) const {
    for (const auto &[known, weight] : weights)
      if (known == node)
        return weight;
    return 0;
  }
};

/// Pairs the backward nodes of one function with the forward nodes of another, or of the same.
/// Values with more uses say little about who shares them.
inline constexpr size_t kMaxUses = 24;

class Aligner {
public:
  Aligner(PairingGraph &graph, const FunctionNodes &forward, const FunctionNodes &backward);
  void run();

private:
  enum class Kind : unsigned char { Recomputed, Transposed };
  struct Chain {
    std::vector<NodeId> nodes;
    Kind kind;
    bool increasing;
    bool isHigherOrder = false;
  };
  using Choice = std::vector<NodeId>; // per node of a chain

  float fitOf(Kind kind, TextId primal, TextId derived);
  bool isForward(const Node &node) const { return !node.origin->transposed; }
  void matchRecomputed();
  NodeId similarUser(const Node &node);
  bool isPlumbing(const Node &node) const;
  void adoptPlumbing();
  std::vector<Chain> makeChains() const;
  void align(const Chain &chain);
  Choice heaviest(const Chain &chain, const Choice &anchors, bool onlyEvident);
  std::pair<size_t, size_t> candidates(const Chain &chain, const std::vector<NodeId> &bucket,
                                       NodeId low, NodeId high, size_t slack) const;
  Evidence evidenceFor(NodeId id);
  void addLinks(NodeId made, Evidence &links);
  NodeId sumOwner(NodeId primal);
  float score(const Chain &chain, NodeId derived, NodeId primal, const Evidence &evidence);
  std::pair<float, float> typeFit(const Node &derived, NodeId primal,
                                  const Evidence &evidence) const;
  std::vector<std::pair<NodeId, NodeId>> rooms(const Chain &chain, const Choice &choice) const;
  float supportFor(const Node &node, NodeId primal, const Evidence &evidence) const;
  void settle(const Chain &chain, const Choice &choice);
  const std::vector<NodeId> &bucketOf(KeyId key) const;
  std::vector<std::pair<NodeId, NodeId>> brackets(const Chain &chain, const Choice &anchors) const;

  PairingGraph &graph_;
  const FunctionNodes &forward_, &backward_;
  std::unordered_map<KeyId, std::vector<NodeId>> buckets_;
};

} // namespace hlotag::analysis
