// SPDX-License-Identifier: Apache-2.0
#include "pairing_aligner.h"
#include "pairing_rules.h"

#include <map>

namespace hlotag::analysis {
namespace {

constexpr float kMoveBonus = 0.4f;
constexpr size_t kSlack = 16;
constexpr int kRounds = 2;

/// A chain is aligned in parts, each with some of what follows: what is known of a few thousand
/// operations fits into the processor's caches, and what is further ahead says nothing new.
constexpr size_t kPart = 3072;
constexpr size_t kAhead = 256;

} // namespace

using namespace ir;

PrefixMaximum::Entry PrefixMaximum::upTo(size_t place) const {
  Entry best;
  for (size_t at = place + 1; at > 0; at -= at & (~at + 1))
    if (tree_[at].state >= first_ && tree_[at].weight > best.weight)
      best = tree_[at];
  return best;
}

void PrefixMaximum::put(size_t place, Entry entry) {
  for (size_t at = place + 1; at < tree_.size(); at += at & (~at + 1))
    if (tree_[at].state < first_ || entry.weight > tree_[at].weight)
      tree_[at] = entry;
}

static uint64_t bucketKey(KeyId key, TextId order) { return uint64_t(key) << 32 | (order + 1); }

Aligner::Aligner(PairingGraph &graph, const FunctionNodes &forward, const FunctionNodes &backward,
                 NodeId call)
    : graph_(graph), values_(graph.values()), forward_(forward), backward_(backward), call_(call),
      best_(forward.end - forward.begin) {
  for (NodeId id = forward.begin; id < forward.end; ++id) {
    const Node &node = graph.nodes[id];
    if (node.owner != id || node.follows != kNone)
      continue;
    buckets_.insert(bucketKey(node.key, node.order->letters)).first->push_back(arena_, id);
    if (isLoose() && (!node.order->isDerived || isAcross()))
      buckets_.insert(uint64_t(node.key) << 32).first->push_back(arena_, id);
  }
  addOutputs(call_ == kNone ? kNone : graph_.nodes[call_].primal, forward.body, outputs_);
}

/// The equations that make what `body` hands to the forward code around `host`, the operation that
/// runs it. What only the backward pass uses is a residual.
void Aligner::addOutputs(NodeId host, RegionId body, NodeIds &outputs) {
  auto isUsed = [&](uint32_t number) {
    for (const Use &use : values_.uses(graph_.results(host)[number]))
      if (use.user == kNone || !graph_.nodes[use.user].isTransposed)
        return true;
    return false;
  };
  bool isLoop = host != kNone && graph_.nodes[host].name == graph_.ids().whileOp;
  for (const Yield &yield : values_.yields(body)) {
    NodeId maker = graph_.definition(yield.value);
    // A loop puts a slice into a stack; what it carries to the next iteration is used there.
    bool isStacked = isLoop && maker != kNone && isPlumbing(graph_.nodes[maker]);
    if (isStacked && graph_.operands(maker).size() > 1)
      maker = graph_.definition(graph_.operands(maker)[1]);
    if (maker == kNone || (host != kNone && (!isLoop || isStacked) && !isUsed(yield.number)))
      continue;
    outputs.push_back(arena_, graph_.nodes[maker].owner);
    addMakers(graph_.nodes[maker].owner, 0, outputs);
  }
  outputs.sort(); // A training step has thousands.
}

/// The nodes that `derived` may stem from: of its scope and line, and differentiated once less.
const Aligner::Bucket &Aligner::bucketOf(const Node &derived) const {
  static const Bucket none;
  if (const Bucket *found = buckets_.find(bucketKey(derived.key, derived.order->base)))
    return *found;
  if (!isLoose() || (!derived.isCheckpointed && !derived.isRematted && !isAcross()))
    return none;
  const Bucket *found = buckets_.find(uint64_t(derived.key) << 32);
  return found ? *found : none;
}

/// Frames must agree, but with jax.checkpoint, which loses some.
bool Aligner::isCandidate(const Node &derived, const Bucket &bucket, NodeId primal) const {
  const Node &from = graph_.nodes[primal];
  // A call or loop of the same name may have lost the results that nothing uses.
  if (!derived.isRematted && derived.primitive != from.primitive && from.makesIntegers)
    return false;
  if (!derived.trace || from.trace == derived.trace)
    return true;
  return derived.isCheckpointed || derived.isRematted || !from.trace ||
         (isAcross() && bucket.size() == 1);
}

/// One chain per region and kind of derived code. Each stretch of recomputed operations is a chain
/// of its own.
std::vector<Aligner::Chain> Aligner::makeChains() {
  for (NodeId id : backward_.calls)
    if (graph_.nodes[id].isTransposed && graph_.functionOf(graph_.nodes[id]))
      derivedCalls_.insert(graph_.nodes[id].primitive);
  std::map<std::tuple<size_t, std::string_view, NodeId, size_t>, Chain> transposed;
  std::vector<Chain> chains;
  bool isOpen = false; // the last chain of recomputed operations
  for (NodeId id : backward_.derived) {
    const Node &node = graph_.nodes[id];
    if (!node.isTransposed || node.follows != kNone)
      continue;
    if (node.isRematted) {
      if (!isOpen)
        chains.push_back({{}, Kind::Recomputed, true});
      chains.back().nodes.push_back(id);
      isOpen = true;
      continue;
    }
    if (isPlumbing(node))
      continue;
    isOpen = false;
    std::string_view letters = graph_.provenance().text(node.order->letters);
    size_t region = values_.region(node.region).number;
    transposed[{letters.size(), letters, graph_.parentOf(node) + 1, region}].nodes.push_back(id);
  }
  // A lower order comes first: higher ones are derived from it. So do regions around others.
  for (auto &[order, chain] : transposed) {
    chain.isLinearized = std::get<1>(order).find('t') != 0;
    chains.push_back(std::move(chain));
  }
  return chains;
}

/// The range in `bucket` of nodes between `low` and `high` and some around it, since anchors may
/// err; at most kMaxCandidates, those nearest to where the chain comes from.
std::pair<size_t, size_t> Aligner::candidates(const Chain &chain, const Bucket &bucket, NodeId low,
                                              NodeId high, size_t slack) const {
  size_t begin = size_t(std::lower_bound(bucket.begin(), bucket.end(), low) - bucket.begin());
  size_t end = size_t(std::upper_bound(bucket.begin(), bucket.end(), high) - bucket.begin());
  end = std::max(begin, end);
  begin -= std::min(begin, slack);
  end = std::min(bucket.size(), end + slack);
  while (begin < end && bucket[begin] < chain.begin)
    ++begin;
  while (end > begin && bucket[end - 1] >= chain.end)
    --end;
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
  std::vector<std::pair<NodeId, NodeId>> result(anchors.size(), {chain.begin, chain.end});
  auto afterAnchor = [&](NodeId anchor) {
    return chain.increasing ? anchor : graph_.nodes[anchor].last;
  };
  NodeId before = chain.reached != kNone ? afterAnchor(chain.reached)
                  : chain.increasing     ? chain.begin
                                         : chain.end;
  for (size_t i = 0; i < anchors.size(); ++i) {
    if (anchors[i] != kNone)
      before = afterAnchor(anchors[i]);
    (chain.increasing ? result[i].first : result[i].second) = before;
  }
  NodeId after = chain.increasing ? chain.end : chain.begin;
  for (size_t i = anchors.size(); i-- > 0;) {
    after = anchors[i] == kNone ? after : anchors[i];
    (chain.increasing ? result[i].second : result[i].first) = after;
  }
  return result;
}

/// Going backwards one meets a loop at its end.
size_t Aligner::placeOf(const Chain &chain, NodeId id) const {
  return chain.increasing ? id - forward_.begin : forward_.end - 1 - graph_.nodes[id].last;
}

Aligner::Choice Aligner::heaviest(Chain &chain, const Choice &anchors, bool onlyTied) {
  struct State {
    size_t node;
    NodeId primal;
    int before;
  };
  int firstState = numStates_;
  best_.forgetBefore(firstState);
  std::vector<State> states;
  std::vector<std::pair<size_t, PrefixMaximum::Entry>> reached; // by one node
  auto ranges = brackets(chain, anchors);
  for (size_t i = chain.from; i < chain.to; ++i) {
    if (chain.clues.size() == i)
      chain.clues.push_back(cluesFor(chain.nodes[i]));
    const Node &node = graph_.nodes[chain.nodes[i]];
    const Bucket &bucket = *chain.clues[i].bucket;
    reached.clear();
    auto [low, high] = ranges[i - chain.from];
    auto consider = [&](NodeId primal) {
      size_t place = placeOf(chain, primal);
      if (place < chain.place || !isCandidate(node, bucket, primal))
        return;
      Support support = supportFor(chain, i, primal);
      if (support.score <= 0 || (onlyTied && !support.isTied && bucket.size() > 1))
        return;
      PrefixMaximum::Entry before = best_.upTo(place);
      // Most equations leave something: moving on is likelier than staying.
      if (place > 0) {
        PrefixMaximum::Entry moved = best_.upTo(place - 1);
        moved.weight += kMoveBonus;
        if (moved.weight >= before.weight)
          before = moved;
      } else if (before.state < 0) {
        before.weight += kMoveBonus;
      }
      states.push_back({i, primal, before.state});
      reached.push_back({place, {before.weight + support.score, numStates_++}});
    };
    if (onlyTied && bucket.size() > 1) {
      for (NodeId primal : chain.clues[i].users())
        if (primal >= chain.begin && primal < chain.end &&
            std::binary_search(bucket.begin(), bucket.end(), primal))
          consider(primal);
    } else {
      auto [begin, end] =
          candidates(chain, bucket, low, high, chain.kind == Kind::Recomputed ? 0 : kSlack);
      for (size_t at = begin; at < end; ++at)
        consider(bucket[at]);
    }
    for (auto &[place, entry] : reached)
      best_.put(place, entry);
  }
  Choice choice(chain.to - chain.from, kNone);
  if (forward_.end > forward_.begin)
    for (int at = best_.upTo(forward_.end - forward_.begin - 1).state; at >= firstState;
         at = states[size_t(at - firstState)].before) {
      const State &state = states[size_t(at - firstState)];
      choice[state.node - chain.from] = state.primal;
    }
  return choice;
}

/// Takes over a choice, each with its confidence.
void Aligner::settle(const Chain &chain, const Choice &choice) {
  std::vector<size_t> open; // not recognized by its operands: what its place says is no news there
  std::vector<size_t> zeros;
  for (size_t i = chain.from; i < chain.to; ++i) {
    Node &node = graph_.nodes[chain.nodes[i]];
    if (chain.clues[i].isZero && chain.kind == Kind::Transposed)
      zeros.push_back(i);
    if (node.confidence > 0)
      continue;
    open.push_back(i);
    node.primal = choice[i - chain.from];
  }
  for (int round = 0; round < 3; ++round) {
    // JAX transposes in exactly reverse order: a pair lies between those that are certain. What
    // may be a residual comes after its equation, wherever that is.
    Choice certain(choice.size(), kNone);
    for (size_t i = chain.from; round > 0 && i < chain.to; ++i)
      if (const Node &node = graph_.nodes[chain.nodes[i]]; isAnchor(node))
        certain[i - chain.from] = node.primal;
    auto room = brackets(chain, certain);
    for (size_t i : open) {
      Node &node = graph_.nodes[chain.nodes[i]];
      if (node.confidence >= kCertain)
        continue;
      NodeId outside = hoisted(chain, i);
      if (outside != kNone) {
        node.primal = outside;
        node.confidence = std::min(0.95f, mostFor(node));
        for (NodeId source : chain.clues[i].sources())
          node.confidence = std::min(node.confidence, graph_.nodes[source].confidence);
        continue;
      }
      if (choice[i - chain.from] == kNone) { // a helper, to be adopted anew
        node.primal = kNone;
        node.confidence = 0;
        continue;
      }
      auto [low, high] =
          round ? room[i - chain.from] : std::pair<NodeId, NodeId>(chain.begin, chain.end);
      node.confidence = confidenceOf(chain, i, low, high);
    }
    // Zeros are made for the operation that uses them, but where an equation is computed again.
    for (size_t at = zeros.size(); at-- > 0;) {
      Node &node = graph_.nodes[chain.nodes[zeros[at]]];
      const Clues &clues = chain.clues[zeros[at]];
      NodeId sink = onlySink(node, clues);
      if (sink == kNone)
        continue;
      node.primal = sink;
      node.confidence = 1.0f;
      for (NodeId user : clues.sinks())
        node.confidence = std::min(node.confidence, graph_.nodes[user].confidence);
    }
    adoptHelpers(chain, open);
  }
}

/// What is in a region was derived from what is in the region that it was derived from.
void Aligner::bound(Chain &chain) {
  chain.begin = forward_.begin;
  chain.end = forward_.end;
  chain.outputs = outputs_;
  // No pair inside of a function is surer than that of its call.
  chain.seedConfidence = chain.hostConfidence =
      call_ == kNone ? 1.0f : graph_.nodes[call_].confidence;
  const Node &first = graph_.nodes[chain.nodes.front()];
  NodeId parent = graph_.parentOf(first);
  if (chain.kind == Kind::Recomputed || parent == kNone)
    return;
  chain.outputs = {};
  NodeId primal = graph_.nodes[parent].primal;
  if (primal == kNone || graph_.nodes[primal].name != graph_.nodes[parent].name)
    return;
  chain.begin = primal + 1;
  chain.end = graph_.nodes[primal].last + 1;
  chain.seedConfidence = chain.hostConfidence =
      std::min(chain.hostConfidence, graph_.nodes[parent].confidence);
  RegionId body = graph_.regionOf(primal, values_.region(first.region).number);
  if (body != kNone)
    addOutputs(primal, body, chain.outputs);
}

void Aligner::align(Chain &chain) {
  bound(chain);
  size_t count = chain.nodes.size();
  for (size_t at = 0; at < count; ++at)
    graph_.nodes[chain.nodes[at]].place = uint32_t(at);
  chain.clues.reserve(count);
  while (chain.from < count) {
    bool isLast = count - chain.from <= kPart + kAhead;
    size_t end = isLast ? count : chain.from + kPart;
    chain.to = isLast ? count : end + kAhead;
    // What is ahead is aligned again.
    std::vector<std::pair<NodeId, float>> ahead;
    for (size_t i = end; i < chain.to; ++i)
      ahead.emplace_back(graph_.nodes[chain.nodes[i]].primal,
                         graph_.nodes[chain.nodes[i]].confidence);
    Choice choice = alignPart(chain);
    for (; chain.from < end; ++chain.from) {
      const Node &node = graph_.nodes[chain.nodes[chain.from]];
      if (isAnchor(node))
        chain.reached = node.primal;
      if (NodeId chosen = choice[choice.size() - (chain.to - chain.from)]; chosen != kNone)
        chain.place = placeOf(chain, chosen);
    }
    for (size_t i = end; i < chain.to; ++i) {
      Node &node = graph_.nodes[chain.nodes[i]];
      std::tie(node.primal, node.confidence) = ahead[i - end];
      node.agreed = 0;
      if (NodeIds *rivals = graph_.rivals.find(chain.nodes[i]))
        *rivals = {};
    }
  }
}

Aligner::Choice Aligner::alignPart(Chain &chain) {
  Choice anchors(chain.to - chain.from, kNone);
  if (chain.kind == Kind::Transposed)
    anchors = heaviest(chain, anchors, /*onlyTied=*/true);
  else
    for (size_t i = chain.from; i < chain.to; ++i)
      if (const Node &node = graph_.nodes[chain.nodes[i]]; node.primal != kNone && !isHoisted(node))
        anchors[i - chain.from] = node.primal;
  // Later rounds know the neighbours in the graph from the ones before.
  Choice choice;
  for (int round = 0; round < kRounds; ++round) {
    choice = heaviest(chain, anchors, /*onlyTied=*/false);
    for (size_t i = chain.from; i < chain.to; ++i)
      if (Node &node = graph_.nodes[chain.nodes[i]]; node.confidence == 0)
        node.primal = choice[i - chain.from];
  }
  settle(chain, choice);
  return choice;
}
void Aligner::run() {
  matchRecomputed();
  for (Chain &chain : makeChains())
    align(chain);
  adoptPlumbing();
  for (NodeId id : backward_.followers) {
    Node &node = graph_.nodes[id];
    if (!node.isTransposed)
      continue;
    const Node &main = graph_.nodes[node.follows];
    node.primal = main.primal;
    node.confidence = main.confidence;
    // A fourth power is written as the square of a square is, which two equations may be.
    Span<ValueId> factors = graph_.operands(node.follows);
    bool isSquared = main.name == node.name && factors.size() == 2 && factors[0] == factors[1] &&
                     values_.maker(factors[0]) == id;
    if (isSquared)
      node.confidence = std::min(node.confidence, 0.85f);
  }
}

} // namespace hlotag::analysis
