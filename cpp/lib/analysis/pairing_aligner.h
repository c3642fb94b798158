// SPDX-License-Identifier: Apache-2.0
//
// Pairs the operations of two functions, or of one with itself.
#pragma once

#include "pairing_graph.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace hlotag::analysis {

/// Values with more uses say little about who shares them.
inline constexpr size_t kMaxUses = 24;
inline constexpr size_t kMaxCandidates = 64;
inline constexpr float kCertain = 0.9f;

template <class List, class T> bool contains(const List &values, const T &value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

inline void addOnce(std::vector<NodeId> &ids, NodeId id) {
  if (!contains(ids, id))
    ids.push_back(id);
}

/// What the graph around a derived operation says, whatever it is paired with. There is one for
/// each of those, so its lists lie in a row.
class Clues {
public:
  enum List : unsigned char { Sources, Sinks, Residuals, Given, Users, Helps, NumLists };
  using Lists = std::array<std::vector<uint32_t>, NumLists>;

  const NodeIds *bucket = nullptr; ///< what is at its place: candidates
  float certainty = 1;             ///< of recomputed residuals, and of those that it helps
  uint32_t numBatched = 0;         ///< how many dimensions batching adds to some values
  bool isZero = false;             ///< it makes zeros
  bool isSeeded = false;           ///< a cotangent of its is handed to the function or region
  bool hasCotangent = false; ///< it works on something that is no forward value: all derivatives do

  void keep(Arena &arena, const Lists &lists);
  /// Derived operations that made its cotangents.
  Span<NodeId> sources() const { return list(Sources); }
  /// Derived operations that use what it makes.
  Span<NodeId> sinks() const { return list(Sinks); }
  /// What else it works on, but for constants.
  Span<ValueId> residuals() const { return list(Residuals); }
  /// Residuals or cotangents.
  Span<ValueId> given() const { return list(Given); }
  /// Equations that make or use a residual.
  Span<NodeId> users() const { return list(Users); }
  /// Equations that recomputed residuals it uses belong to.
  Span<NodeId> helps() const { return list(Helps); }

private:
  Span<uint32_t> list(List which) const {
    return {ids_ + (which == 0 ? 0 : ends_[which - 1]), ids_ + ends_[which]};
  }

  const uint32_t *ids_ = nullptr;
  uint32_t ends_[NumLists] = {};
};

/// For each place, the best of what was put at places up to it.
class PrefixMaximum {
public:
  struct Entry {
    float weight = 0;
    int state = -1;
  };
  explicit PrefixMaximum(size_t size) : tree_(size + 1) {}

  Entry upTo(size_t place) const;
  void put(size_t place, Entry entry);
  /// Forgets what was put, which had states before that one.
  void forgetBefore(int state) { first_ = state; }

private:
  std::vector<Entry> tree_;
  int first_ = 0;
};

/// What speaks for one pair.
struct Support {
  float score = 0;          ///< 0: not a pair
  float fit = 0;            ///< what the primitives say
  int types = 0;            ///< those of a cotangent: 2, but for a batch dimension: 1, not: 0
  bool isTied = false;      ///< they share a value, or a constant
  size_t numTied = 0;       ///< how many of the residuals they share
  bool isInner = false;     ///< its cotangent is made by an operation of the same equation
  bool isClosed = false;    ///< that one's result is a cotangent of an operand already
  bool isLinked = false;    ///< the cotangent comes from a user of what the forward operation makes
  bool isFollowed = false;  ///< the result goes to the equation that made an operand
  float linkConfidence = 1; ///< of the neighbour that says so
};

/// Pairs the derived nodes of one function with the nodes they were derived from, in another
/// function or in the same.
class Aligner {
public:
  /// `call`: the derived operation that calls `backward`, or none.
  Aligner(PairingGraph &graph, const FunctionNodes &forward, const FunctionNodes &backward,
          NodeId call);
  void run();

private:
  enum class Kind : unsigned char { Recomputed, Transposed };
  struct Chain {
    std::vector<NodeId> nodes;
    Kind kind = Kind::Transposed;
    bool increasing = false;
    bool isLinearized = false; // differentiated forward after it was transposed
    std::vector<Clues> clues;  // per node, as far as they were looked at
    size_t from = 0, to = 0;   // the part that is being aligned
    size_t place = 0;          // in the forward code, where the part before ended
    NodeId reached = kNone;    // the last certain pair of that, if any
    NodeId begin = 0, end = 0; // of the nodes it is paired with
    NodeIds outputs;           // equations whose results those return, in order
    float seedConfidence = 1;  // that cotangents of the outputs are handed in
    float hostConfidence = 1;  // that these are the nodes

    bool hasOutput(NodeId equation) const {
      return std::binary_search(outputs.begin(), outputs.end(), equation);
    }
  };
  using Choice = std::vector<NodeId>; // per node of the part of a chain that is being aligned
  using Bucket = NodeIds;
  /// What is learnt of an equation when it is asked for.
  struct Equation {
    NodeIds makers;
    ValueIds touched;
    bool knowsMakers = false, knowsTouched = false;
  };

  // Candidates
  bool isForward(const Node &node) const { return !node.isTransposed; }
  bool isAcross() const { return &forward_ != &backward_; }
  /// Whether some may stem from a node of another order at their place.
  bool isLoose() const { return graph_.hasCheckpoint || isAcross(); }
  const Bucket &bucketOf(const Node &derived) const;
  bool isCandidate(const Node &derived, const Bucket &bucket, NodeId primal) const;
  std::pair<size_t, size_t> candidates(const Chain &chain, const Bucket &bucket, NodeId low,
                                       NodeId high, size_t slack) const;

  // Recomputed operations
  void matchRecomputed();
  bool mayRepeat(NodeId id, NodeId other);
  void placesOf(const Node &node, std::vector<KeyId> &places);
  bool mayBeHoisted(const Node &node);
  const FunctionNodes *aroundLoop() const;
  void seeUsers(NodeId id, std::unordered_map<NodeId, NodeId> &originals);
  bool worksOnValues(NodeId id);
  bool worksOnItsOwn(NodeId id, NodeId equation);
  NodeId similarUser(NodeId id);

  // Evidence
  Clues cluesFor(NodeId id);
  bool isSeed(const Node &node, ValueId value, NodeId source) const;
  void addUsers(ValueId residual, KeyId key, std::vector<NodeId> &users);
  bool broadcastsOperand(NodeId equation);
  Support supportFor(const Chain &chain, size_t at, NodeId primal);
  float fitOf(const Chain &chain, TextId primal, TextId derived);
  bool isAnyAlike(Span<TypeId> a, Span<TypeId> b, size_t numBatched);
  int typesOf(const Node &derived, NodeId primal, const Clues &clues, float &bonus);
  bool isForwardParameter(ValueId argument) const;
  bool isTied(ValueId value, NodeId equation);
  NodeIds makersFor(NodeId equation);
  void addMakers(NodeId equation, int depth, NodeIds &makers);
  bool feeds(NodeId equation, NodeId consumer, const Chain &chain, NodeId cotangent);
  bool worksOn(NodeId equation, ValueId value);
  bool worksOnSumsOf(NodeId equation);
  NodeId sumOwner(NodeId sum, const Clues &clues, bool &isSure);

  // Alignment
  std::vector<Chain> makeChains();
  void bound(Chain &chain);
  void addOutputs(NodeId host, RegionId body, NodeIds &outputs);
  void align(Chain &chain);
  Choice alignPart(Chain &chain);
  bool isAnchor(const Node &node) const {
    return node.confidence >= kCertain && !graph_.nodes[node.primal].isOrphan && !isHoisted(node);
  }
  /// Whether a node was paired with one that JAX took out of the loop.
  bool isHoisted(const Node &node) const {
    return graph_.nodes[node.primal].key != node.key || node.primal < forward_.begin ||
           node.primal >= forward_.end;
  }
  size_t placeOf(const Chain &chain, NodeId id) const;
  Choice heaviest(Chain &chain, const Choice &anchors, bool onlyTied);
  std::vector<std::pair<NodeId, NodeId>> brackets(const Chain &chain, const Choice &anchors) const;
  void settle(const Chain &chain, const Choice &choice);
  float mostFor(const Node &node) const;
  bool isMixed(const Chain &chain, const Node &derived);
  bool keepsType(const Node &equation, const Node &derived);
  bool mayStemFromShape(const Chain &chain, size_t at, NodeId member);
  bool haveOneOrigin(NodeId a, NodeId b) const;
  bool isOneTooMany(const Chain &chain, size_t at);
  float confidenceOf(const Chain &chain, size_t at, NodeId low, NodeId high);

  // Helpers
  NodeId hoisted(const Chain &chain, size_t at);
  bool isPlumbing(const Node &node) const;
  void adoptPlumbing();
  void adoptHelpers(const Chain &chain, const std::vector<size_t> &places);
  bool adoptHelper(const Chain &chain, size_t at);
  bool isBroadcastByUser(NodeId id, const Clues &clues) const;
  NodeId onlySink(const Node &node, const Clues &clues) const;

  PairingGraph &graph_;
  ValueGraph &values_;
  const FunctionNodes &forward_, &backward_;
  NodeId call_;
  Arena arena_;
  ir::FlatMap<uint64_t, Bucket> buckets_; // by key and order; by key alone for all
  ir::FlatMap<NodeId, Equation> equations_;
  std::unordered_set<TextId> derivedCalls_; ///< primitives that have a function in the derived code
  std::set<std::pair<const void *, KeyId>> hoisted_; ///< outside of the loop: names, keys
  NodeIds outputs_;    ///< equations whose results the forward function returns
  Clues::Lists lists_; ///< scratch
  PrefixMaximum best_;
  int numStates_ = 0; ///< that were ever put there
};

} // namespace hlotag::analysis
