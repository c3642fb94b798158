// SPDX-License-Identifier: Apache-2.0
#include "pairing_aligner.h"

#include <map>

namespace hlotag::analysis {
namespace {

constexpr size_t kMaxCandidates = 64;
constexpr float kMoveBonus = 0.4f;
constexpr size_t kSlack = 16;

/// For each place, the best of what was put at places up to it.
class PrefixMaximum {
public:
  explicit PrefixMaximum(size_t size) : tree_(size + 1, {0.0f, -1}) {}
  using Entry = std::pair<float, int>; // weight, state

  Entry upTo(size_t place) const {
    Entry best{0.0f, -1};
    for (size_t at = place + 1; at > 0; at -= at & (~at + 1))
      if (tree_[at].first > best.first)
        best = tree_[at];
    return best;
  }
  void put(size_t place, Entry entry) {
    for (size_t at = place + 1; at < tree_.size(); at += at & (~at + 1))
      if (entry.first > tree_[at].first)
        tree_[at] = entry;
  }

private:
  std::vector<Entry> tree_;
};

} // namespace

using namespace ir;

Aligner::Aligner(PairingGraph &graph, const FunctionNodes &forward, const FunctionNodes &backward)
    : graph_(graph), forward_(forward), backward_(backward) {
  for (NodeId id = forward.begin; id < forward.end; ++id) {
    const Node &node = graph.nodes[id];
    if (isForward(node) && node.owner == id)
      buckets_[node.key].push_back(id);
  }
}

const std::vector<NodeId> &Aligner::bucketOf(KeyId key) const {
  static const std::vector<NodeId> none;
  auto found = buckets_.find(key);
  return found == buckets_.end() ? none : found->second;
}

/// One chain per kind of backward code: which transformations made it decides the order in which
/// it runs. Each stretch of recomputed operations is a chain of its own.
std::vector<Aligner::Chain> Aligner::makeChains() const {
  std::map<std::string, Chain> transposed;
  std::vector<Chain> chains;
  bool isOpen = false; // the last chain of recomputed operations
  for (NodeId id = backward_.begin; id < backward_.end; ++id) {
    const Node &node = graph_.nodes[id];
    if (!node.origin->transposed || node.follows != kNone)
      continue;
    if (node.origin->rematted) {
      if (!isOpen)
        chains.push_back({{}, Kind::Recomputed, true, false});
      chains.back().nodes.push_back(id);
      isOpen = true;
      continue;
    }
    if (isPlumbing(node))
      continue;
    isOpen = false;
    std::string order;
    for (char transform : graph_.provenance().text(node.origin->transforms))
      if (transform == 't' || (transform == 'j' && order.empty()))
        order += transform;
    bool increasing = std::count(order.begin(), order.end(), 't') % 2 == 0;
    Chain &chain =
        transposed.try_emplace(order, Chain{{}, Kind::Transposed, increasing, order != "t"})
            .first->second;
    chain.nodes.push_back(id);
  }
  for (auto &[order, chain] : transposed)
    chains.push_back(std::move(chain));
  return chains;
}

/// The range in `bucket` of nodes between `low` and `high` and some around it, since anchors may
/// err; at most kMaxCandidates, those nearest to where the chain comes from.
std::pair<size_t, size_t> Aligner::candidates(const Chain &chain, const std::vector<NodeId> &bucket,
                                              NodeId low, NodeId high, size_t slack) const {
  size_t begin = size_t(std::lower_bound(bucket.begin(), bucket.end(), low) - bucket.begin());
  size_t end = size_t(std::upper_bound(bucket.begin(), bucket.end(), high) - bucket.begin());
  end = std::max(begin, end);
  begin -= std::min(begin, slack);
  end = std::min(bucket.size(), end + slack);
  if (end > begin + kMaxCandidates) {
    if (chain.increasing)
      end = begin + kMaxCandidates;
    else
      begin = end - kMaxCandidates;
  }
  return {begin, end};
}

/// Per node of the chain the range of nodes that the anchors around it leave.
std::vector<std::pair<NodeId, NodeId>> Aligner::brackets(const Chain &chain,
                                                         const Choice &anchors) const {
  size_t count = chain.nodes.size();
  std::vector<std::pair<NodeId, NodeId>> result(count, {forward_.begin, forward_.end});
  NodeId before = chain.increasing ? forward_.begin : forward_.end;
  for (size_t i = 0; i < count; ++i) {
    if (anchors[i] != kNone)
      before = chain.increasing ? anchors[i] : graph_.nodes[anchors[i]].last;
    (chain.increasing ? result[i].first : result[i].second) = before;
  }
  NodeId after = chain.increasing ? forward_.end : forward_.begin;
  for (size_t i = count; i-- > 0;) {
    after = anchors[i] == kNone ? after : anchors[i];
    (chain.increasing ? result[i].second : result[i].first) = after;
  }
  return result;
}

Aligner::Choice Aligner::heaviest(const Chain &chain, const Choice &anchors, bool onlyEvident) {
  struct State {
    size_t node;
    NodeId primal;
    int before;
  };
  std::vector<State> states;
  PrefixMaximum best(forward_.end - forward_.begin);
  auto placeOf = [&](NodeId id) {
    // Going backwards one meets a loop at its end.
    return chain.increasing ? id - forward_.begin : forward_.end - 1 - graph_.nodes[id].last;
  };
  auto ranges = brackets(chain, anchors);
  for (size_t i = 0; i < chain.nodes.size(); ++i) {
    NodeId id = chain.nodes[i];
    Evidence evidence = evidenceFor(id);
    const std::vector<NodeId> &bucket = bucketOf(graph_.nodes[id].key);
    std::vector<std::pair<size_t, PrefixMaximum::Entry>> reached;
    auto consider = [&](NodeId primal) {
      float weight = score(chain, id, primal, evidence);
      if (weight <= 0)
        return;
      PrefixMaximum::Entry before = best.upTo(placeOf(primal));
      // Most equations leave something: moving on is likelier than staying.
      if (placeOf(primal) > 0) {
        PrefixMaximum::Entry moved = best.upTo(placeOf(primal) - 1);
        moved.first += kMoveBonus;
        if (moved.first >= before.first)
          before = moved;
      } else if (before.second < 0) {
        before.first += kMoveBonus;
      }
      states.push_back({i, primal, before.second});
      reached.push_back({placeOf(primal), {before.first + weight, int(states.size()) - 1}});
    };
    auto [low, high] = ranges[i];
    if (onlyEvident) {
      for (auto [primal, weight] : evidence.weights)
        if (weight > 1 && std::binary_search(bucket.begin(), bucket.end(), primal))
          consider(primal);
      if (bucket.size() == 1 && evidence.weights.empty())
        consider(bucket[0]);
    } else {
      auto [begin, end] =
          candidates(chain, bucket, low, high, chain.kind == Kind::Recomputed ? 0 : kSlack);
      for (size_t at = begin; at < end; ++at)
        consider(bucket[at]);
    }
    for (auto &[place, entry] : reached)
      best.put(place, entry);
  }
  Choice choice(chain.nodes.size(), kNone);
  if (forward_.end > forward_.begin)
    for (int at = best.upTo(forward_.end - forward_.begin - 1).second; at >= 0;
         at = states[at].before)
      choice[states[at].node] = states[at].primal;
  return choice;
}

/// Per node of the chain the range of nodes that the choices before and after it leave.
std::vector<std::pair<NodeId, NodeId>> Aligner::rooms(const Chain &chain,
                                                      const Choice &choice) const {
  size_t count = choice.size();
  std::vector<std::pair<NodeId, NodeId>> result(count, {forward_.begin, forward_.end});
  NodeId before = kNone, after = kNone;
  for (size_t i = 0; i < count; ++i) {
    if (before != kNone)
      (chain.increasing ? result[i].first : result[i].second) = before;
    before = choice[i] == kNone ? before : choice[i];
  }
  for (size_t i = count; i-- > 0;) {
    if (after != kNone)
      (chain.increasing ? result[i].second : result[i].first) = after;
    after = choice[i] == kNone ? after : choice[i];
  }
  return result;
}

/// Takes over a choice, each with the confidence that its lead over the next best gives.
void Aligner::settle(const Chain &chain, const Choice &choice) {
  auto room = rooms(chain, choice);
  for (size_t i = 0; i < chain.nodes.size(); ++i) {
    Node &node = graph_.nodes[chain.nodes[i]];
    if (choice[i] == kNone || node.confidence > 0)
      continue;
    Evidence evidence = evidenceFor(chain.nodes[i]);
    float own = score(chain, chain.nodes[i], choice[i], evidence);
    float next = 0;
    const std::vector<NodeId> &bucket = bucketOf(node.key);
    auto [low, high] = room[i];
    auto [begin, end] = candidates(chain, bucket, low, high, 0);
    for (size_t at = begin; at < end; ++at)
      if (bucket[at] != choice[i])
        next = std::max(next, score(chain, chain.nodes[i], bucket[at], evidence));
    float lead = std::min(1.0f, (own - next) / 2.0f);
    float strength = std::min(1.0f, own / 3.0f);
    node.primal = choice[i];
    node.confidence = std::max(0.05f, 0.5f + 0.25f * lead + 0.25f * strength);
    if (next == 0 && own >= 2.5f)
      node.confidence = 0.97f;
    node.confidence = std::min(node.confidence, supportFor(node, choice[i], evidence));
    // In higher orders, equations that derivatives add share the place of those they come from.
    if (chain.isHigherOrder)
      node.confidence = std::min(node.confidence, 0.85f);
    // Without a common value nothing but the order tells a copy from its likes.
    if (chain.kind == Kind::Recomputed && next > 0)
      node.confidence = std::min(node.confidence, 0.85f);
  }
}

void Aligner::align(const Chain &chain) {
  Choice anchors(chain.nodes.size(), kNone);
  if (chain.kind == Kind::Transposed)
    anchors = heaviest(chain, anchors, /*onlyEvident=*/true);
  else
    for (size_t i = 0; i < chain.nodes.size(); ++i)
      anchors[i] = graph_.nodes[chain.nodes[i]].primal;
  // Later rounds know the neighbours in the graph from the ones before.
  for (int round = 0; round < 3; ++round) {
    Choice choice = heaviest(chain, anchors, /*onlyEvident=*/false);
    for (size_t i = 0; i < choice.size(); ++i)
      if (graph_.nodes[chain.nodes[i]].confidence == 0)
        graph_.nodes[chain.nodes[i]].primal = choice[i];
    if (round == 2)
      settle(chain, choice);
  }
}

/// What drives a backward loop or fits arguments of a region (counter, slices) has its line.
bool Aligner::isPlumbing(const Node &node) const {
  NodeId parent = graph_.nodeOf(node.op.parent());
  if (parent == kNone || graph_.nodes[parent].op.name() == graph_.ids().caseOp ||
      graph_.nodes[parent].origin->sourceKey != node.origin->sourceKey)
    return false;
  std::string_view primitive = graph_.provenance().text(node.origin->primitive);
  return primitive != "closed_call" && primitive != "while" && primitive != "cond";
}

void Aligner::adoptPlumbing() {
  for (NodeId id = backward_.begin; id < backward_.end; ++id) {
    Node &node = graph_.nodes[id];
    if (node.primal != kNone || !node.origin->transposed || !isPlumbing(node))
      continue;
    const Node &parent = graph_.nodes[graph_.nodeOf(node.op.parent())];
    node.primal = parent.primal;
    node.confidence = parent.confidence;
  }
}

void Aligner::run() {
  matchRecomputed();
  for (const Chain &chain : makeChains())
    align(chain);
  adoptPlumbing();
  for (NodeId id = backward_.begin; id < backward_.end; ++id) {
    Node &node = graph_.nodes[id];
    if (node.follows == kNone || !node.origin->transposed)
      continue;
    node.primal = graph_.nodes[node.follows].primal;
    node.confidence = graph_.nodes[node.follows].confidence;
  }
}

} // namespace hlotag::analysis
