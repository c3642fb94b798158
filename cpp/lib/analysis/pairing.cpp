// SPDX-License-Identifier: Apache-2.0
#include "hlotag/analysis/pairing.h"

#include "pairing_graph.h"
#include "pairing_rules.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>

namespace hlotag::analysis {
namespace {

using namespace ir;

constexpr size_t kMaxCandidates = 64;
constexpr float kMoveBonus = 0.4f;
constexpr size_t kSlack = 16;
constexpr size_t kMaxUses = 24; // of a value, that say something about who shares it

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

/// What speaks for certain forward nodes, besides their key.
struct Evidence {
  std::vector<std::pair<NodeId, float>> weights;
  std::vector<std::pair<NodeId, float>> links; ///< the part that neighbours' pairs contribute
  NodeId latest = kNone;                       ///< the last backward node among the operands

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
  };
  using Choice = std::vector<NodeId>; // per node of a chain

  bool isForward(const Node &node) const { return !node.origin->transposed; }
  void matchRecomputed();
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
  std::pair<float, float> typeFit(const Node &derived, NodeId primal);
  std::pair<NodeId, NodeId> room(const Chain &chain, const Choice &choice, size_t i) const;
  float supportFor(const Node &node, NodeId primal, const Evidence &evidence) const;
  void settle(const Chain &chain, const Choice &choice);
  const std::vector<NodeId> &bucketOf(KeyId key) const;
  std::vector<std::pair<NodeId, NodeId>> brackets(const Chain &chain, const Choice &anchors) const;

  PairingGraph &graph_;
  const FunctionNodes &forward_, &backward_;
  std::unordered_map<KeyId, std::vector<NodeId>> buckets_;
};

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

/// A recomputed operation has the name, the place and the operands of the one it repeats.
void Aligner::matchRecomputed() {
  struct Signature {
    const void *name;
    KeyId key;
    std::vector<const void *> operands;
    bool operator<(const Signature &o) const {
      return std::tie(key, name, operands) < std::tie(o.key, o.name, o.operands);
    }
  };
  auto signatureOf = [&](const Node &node) {
    Signature signature{node.op.name().opaque(), node.key, {}};
    for (Value operand : node.op.operands())
      signature.operands.push_back(graph_.canonical(operand).opaque());
    return signature;
  };
  std::vector<NodeId> recomputed;
  std::set<KeyId> keys;
  for (NodeId id = backward_.begin; id < backward_.end; ++id)
    if (graph_.nodes[id].origin->rematted) {
      recomputed.push_back(id);
      keys.insert(graph_.nodes[id].key);
    }
  std::map<Signature, NodeId> computed;
  bool isExact = false;
  for (NodeId id = forward_.begin; id < forward_.end && !recomputed.empty(); ++id)
    if (isForward(graph_.nodes[id]) && keys.count(graph_.nodes[id].key))
      computed.emplace(signatureOf(graph_.nodes[id]), id);
  for (NodeId id : recomputed) {
    Node &node = graph_.nodes[id];
    auto found = computed.find(signatureOf(node));
    if (found == computed.end() || node.op.results().size() == 0)
      continue;
    const Node &original = graph_.nodes[found->second];
    if (original.op.results().size() != node.op.results().size())
      continue;
    node.primal = original.owner;
    node.confidence = 1.0f;
    isExact = true;
    for (Value result : node.op.results())
      graph_.setAlias(result, graph_.canonical(original.op.results()[result.number()]));
  }
  // What is left, where copies can be recognized, are residuals of equations that were copied.
  for (NodeId id : recomputed) {
    Node &node = graph_.nodes[id];
    if (!isExact || node.primal != kNone || node.owner == id)
      continue;
    node.primal = graph_.nodes[node.owner].primal;
    node.confidence = node.primal == kNone ? 0.0f : 0.97f;
  }
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
        chains.push_back({{}, Kind::Recomputed, true});
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
        transposed.try_emplace(order, Chain{{}, Kind::Transposed, increasing}).first->second;
    chain.nodes.push_back(id);
  }
  for (auto &[order, chain] : transposed)
    chains.push_back(std::move(chain));
  return chains;
}

/// What the graph says: which equation made the cotangent that comes in, and which equations have
/// to do with the other operands.
Evidence Aligner::evidenceFor(NodeId id) {
  Evidence links, residuals;
  const Node &node = graph_.nodes[id];
  bool isSum = graph_.provenance().text(node.origin->primitive) == "add_any";
  NodeId latest = kNone;
  for (Value raw : node.op.operands()) {
    Value value = graph_.canonical(raw);
    NodeId source = graph_.nodeOf(value.definingOp());
    if (source != kNone && graph_.nodes[source].origin->transposed) {
      NodeId made = graph_.nodes[source].follows == kNone ? source : graph_.nodes[source].follows;
      if (latest == kNone || made > latest)
        latest = made;
      if (!isSum)
        addLinks(made, links);
      continue;
    }
    if (source != kNone) {
      // Only few derivatives use the result itself; the others use operands.
      const Node &owner = graph_.nodes[graph_.nodes[source].owner];
      bool isUsed = graph_.nodes[source].owner != source ||
                    usesOwnResult(graph_.provenance().text(owner.origin->primitive));
      residuals.add(graph_.nodes[source].owner, isUsed ? 2.0f : 0.3f);
    }
    size_t count = 0;
    for (OpOperand use : value.uses()) {
      if (++count > kMaxUses)
        break;
      NodeId user = graph_.nodeOf(use.owner());
      if (user != kNone && isForward(graph_.nodes[user]) &&
          graph_.nodes[graph_.nodes[user].owner].key == node.key)
        residuals.add(graph_.nodes[user].owner, 1.6f);
    }
  }
  // Cotangents are added as soon as the equation that made the last one is through.
  if (isSum && latest != kNone && graph_.nodes[latest].primal != kNone)
    links.add(sumOwner(graph_.nodes[latest].primal), 3.0f);
  residuals.links = links.weights;
  for (auto [primal, weight] : links.weights)
    residuals.add(primal, residuals.of(primal) + weight);
  residuals.latest = latest;
  return residuals;
}

/// Only the cotangent of a value that is used twice is a sum. If `primal` has no such operand, the
/// sum is that of an addition before it, which hands on its cotangent and emits nothing itself.
NodeId Aligner::sumOwner(NodeId primal) {
  NodeId addition = kNone;
  for (Value operand : graph_.nodes[primal].op.operands()) {
    size_t count = 0;
    for (OpOperand use : graph_.canonical(operand).uses()) {
      NodeId user = graph_.nodeOf(use.owner());
      if (user != kNone && isForward(graph_.nodes[user]) && graph_.nodes[user].follows == kNone)
        ++count;
      if (count > 1)
        return primal;
    }
    NodeId maker = graph_.definition(operand);
    if (maker != kNone && graph_.provenance().text(graph_.nodes[maker].origin->primitive) == "add")
      addition = maker;
  }
  return addition == kNone ? primal : addition;
}

/// The equation after `made` going backwards is its own, or one that made an operand of it.
void Aligner::addLinks(NodeId made, Evidence &links) {
  NodeId consumer = graph_.nodes[made].primal;
  if (consumer == kNone)
    return;
  links.add(consumer, 0.6f);
  for (Value operand : graph_.nodes[consumer].op.operands()) {
    NodeId maker = graph_.definition(operand);
    if (maker != kNone && graph_.nodes[maker].follows == consumer)
      maker = graph_.definition(graph_.nodes[maker].op.operands()[0]);
    if (maker != kNone && graph_.nodes[maker].owner != consumer)
      links.add(graph_.nodes[maker].owner, 1.5f);
  }
}

/// A cotangent comes in with the type of the equation's result, unless it comes from an operation
/// of the same equation, and goes out with the type of an operand. Returns a factor and a bonus.
std::pair<float, float> Aligner::typeFit(const Node &derived, NodeId primal) {
  const Node &from = graph_.nodes[primal];
  bool mayBeInner = false;
  bool comesIn = false, hasCotangent = false;
  for (Value operand : derived.op.operands()) {
    NodeId source = graph_.definition(operand);
    bool isBackward = source != kNone && graph_.nodes[source].origin->transposed;
    hasCotangent |= isBackward;
    mayBeInner |= isBackward && graph_.nodes[source].key == derived.key &&
                  (graph_.nodes[source].primal == kNone || graph_.nodes[source].primal == primal) &&
                  graph_.nodes[source].origin->trace == derived.origin->trace;
    for (Value result : from.op.results())
      comesIn |= result.type().ptr == operand.type().ptr;
  }
  bool goesOut = false;
  for (Value result : derived.op.results())
    for (Value operand : from.op.operands()) {
      goesOut |= operand.type().ptr == result.type().ptr;
      NodeId helper = graph_.definition(operand);
      if (helper != kNone && graph_.nodes[helper].follows == primal)
        goesOut |= graph_.nodes[helper].op.operands()[0].type().ptr == result.type().ptr;
    }
  // Batching adds a dimension to some values and not to others.
  bool isBatched =
      graph_.provenance().text(derived.origin->transforms).find('v') != std::string_view::npos;
  float factor = !comesIn && !isBatched && hasCotangent && !mayBeInner ? 0.3f : 1.0f;
  return {factor, (comesIn ? 0.7f : 0.0f) + (goesOut ? 0.7f : 0.0f)};
}

/// 0: not a pair.
float Aligner::score(const Chain &chain, NodeId derived, NodeId primal, const Evidence &evidence) {
  const Node &from = graph_.nodes[primal];
  const Node &to = graph_.nodes[derived];
  std::string_view source = graph_.provenance().text(from.origin->primitive);
  std::string_view target = graph_.provenance().text(to.origin->primitive);
  float fit = 0;
  if (chain.kind == Kind::Recomputed)
    fit = source == target ? 3.0f : isResidualOf(source, target) ? 1.5f : 0.0f;
  else
    fit = transposeFit(source, target);
  if (fit == 0)
    return 0;
  if (from.origin->trace && from.origin->trace == to.origin->trace)
    fit += 1.0f;
  if (to.constant && from.constant)
    fit += from.constant == to.constant ? 2.0f : -0.8f;
  auto [factor, bonus] = typeFit(to, primal);
  return factor * (std::max(fit, 0.1f) + evidence.of(primal) + bonus);
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

/// The nodes that the choices before and after the `i`th leave to it.
std::pair<NodeId, NodeId> Aligner::room(const Chain &chain, const Choice &choice, size_t i) const {
  NodeId before = kNone, after = kNone;
  for (size_t j = i; j-- > 0 && before == kNone;)
    before = choice[j];
  for (size_t j = i + 1; j < choice.size() && after == kNone; ++j)
    after = choice[j];
  NodeId low = chain.increasing ? before : after, high = chain.increasing ? after : before;
  return {low == kNone ? forward_.begin : low, high == kNone ? forward_.end : high};
}

/// How sure a pair can be at most: if nothing but its neighbours speaks for it, as sure as those;
/// if nothing at all does, not very: its own forward operation may have been dead code.
float Aligner::supportFor(const Node &node, NodeId primal, const Evidence &evidence) const {
  float link = 0;
  for (auto [linked, weight] : evidence.links)
    if (linked == primal)
      link = weight;
  const Node &from = graph_.nodes[primal];
  bool sharesTrace = from.origin->trace && from.origin->trace == node.origin->trace;
  if (evidence.of(primal) - link >= 1.6f || (node.constant && node.constant == from.constant) ||
      (sharesTrace && bucketOf(node.key).size() == 1))
    return 1.0f;
  if (link > 0 && evidence.latest != kNone)
    return std::max(0.5f, graph_.nodes[evidence.latest].confidence);
  return sharesTrace ? 0.92f : 0.8f;
}

/// Takes over a choice, each with the confidence that its lead over the next best gives.
void Aligner::settle(const Chain &chain, const Choice &choice) {
  for (size_t i = 0; i < chain.nodes.size(); ++i) {
    Node &node = graph_.nodes[chain.nodes[i]];
    if (choice[i] == kNone || node.confidence > 0)
      continue;
    Evidence evidence = evidenceFor(chain.nodes[i]);
    float own = score(chain, chain.nodes[i], choice[i], evidence);
    float next = 0;
    const std::vector<NodeId> &bucket = bucketOf(node.key);
    auto [low, high] = room(chain, choice, i);
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

/// Inside a backward function, an argument is the forward value that the caller hands over.
void aliasArguments(PairingGraph &graph, const Node &forward, const Node &backward,
                    const FunctionNodes &from, const FunctionNodes &to) {
  Block forwardBody = from.function.regions()[0].firstBlock();
  Operation end = forwardBody.terminator();
  for (Value argument : to.function.regions()[0].firstBlock().arguments()) {
    Value given = graph.canonical(backward.op.operands()[argument.number()]);
    if (given.isResult() && given.definingOp() == forward.op) {
      graph.setAlias(argument, graph.canonical(end.operands()[given.number()]));
      continue;
    }
    for (intptr_t i = 0; i < forward.op.operands().size(); ++i)
      if (graph.canonical(forward.op.operands()[i]) == given) {
        graph.setAlias(argument, forwardBody.arguments()[i]);
        break;
      }
  }
}

} // namespace

std::vector<Pair> pairBackward(Operation module, Provenance &provenance) {
  PairingGraph graph(module, provenance);
  struct Job {
    const FunctionNodes *forward, *backward;
  };
  std::deque<Job> jobs;
  std::set<const FunctionNodes *> seen;
  for (const FunctionNodes &function : graph.functions)
    if (provenance.callsOf(function.function).empty())
      jobs.push_back({&function, &function});
  auto enqueue = [&](const Job &job) {
    for (NodeId id = job.backward->begin; id < job.backward->end; ++id) {
      const Node &node = graph.nodes[id];
      const FunctionNodes *callee = graph.functionOf(node.op);
      if (!callee || seen.count(callee))
        continue;
      if (!node.origin->transposed) {
        seen.insert(callee);
        jobs.push_back({callee, callee});
        continue;
      }
      const FunctionNodes *from =
          node.primal == kNone ? nullptr : graph.functionOf(graph.nodes[node.primal].op);
      if (!from || from == callee)
        continue;
      seen.insert(callee);
      aliasArguments(graph, graph.nodes[node.primal], node, *from, *callee);
      jobs.push_back({from, callee});
    }
  };
  while (!jobs.empty()) {
    Job job = jobs.front();
    jobs.pop_front();
    Aligner(graph, *job.forward, *job.backward).run();
    enqueue(job);
  }
  std::vector<Pair> pairs;
  for (const Node &node : graph.nodes)
    if (node.primal != kNone) {
      pairs.push_back({node.op, graph.nodes[node.primal].op, node.confidence});
      for (NodeId id = node.primal; id-- > 0 && graph.nodes[id].follows == node.primal;)
        pairs.push_back({node.op, graph.nodes[id].op, node.confidence});
    }
  return pairs;
}

} // namespace hlotag::analysis
