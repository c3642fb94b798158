// SPDX-License-Identifier: Apache-2.0
#include "groups.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace hlotag::analysis {

using ir::Attribute;
using ir::Block;
using ir::Operation;
using ir::Value;

using Index = uint32_t;

namespace {

constexpr std::string_view kGroupOrder = "keep_original_sequence_order_in_group";
constexpr Index kNone = std::numeric_limits<Index>::max();

std::string quote(Operation op) { return ir::concat({"'", op.name().str(), "'"}); }
std::string quoteAt(Operation op) {
  return ir::concat({quote(op), " at ", ir::render(op.location())});
}

/// Returns the group that a value of `_scheduling_group_id` names: `4` for `4:1`. Empty for values
/// without a group, `noop` and `:1`.
std::string_view groupOf(std::string_view value) {
  return value == "noop" ? std::string_view() : value.substr(0, value.find(':'));
}

bool staysCall(Operation call) {
  ir::DictionaryAttr entries = ir::TagWriter::get(call);
  auto text = ir::dynCast<ir::StringAttr>(entries ? entries.lookup("inlineable") : Attribute());
  return text && text.value() == "false";
}

/// The operations that XLA replaces by a body: `func.call`, composites and the
/// `sdy.manual_computation` of a shard_map, unless they have `inlineable = "false"`.
class Inliner {
public:
  Inliner(const CallGraph *graph, const ir::OpIds &ids) : graph_(graph), ids_(ids) {
    for (size_t f = 0; graph && f < graph->functions().size(); ++f)
      *functions_.insert(bodyOf(f).opaque()).first = f;
  }

  /// Returns the body that replaces `op`, or null if XLA keeps it.
  Block bodyOf(Operation op) const {
    if (!graph_ || !(op.name() == ids_.manualComputation || ids_.is(op.name(), ir::kInlined)) ||
        staysCall(op))
      return {};
    if (op.name() == ids_.manualComputation)
      return op.regions()[0].firstBlock();
    auto callee = op.attrOf<ir::FlatSymbolRefAttr>(ids_.calleesOf(op.name()).str());
    size_t function = callee ? graph_->find(callee.value()) : CallGraph::kNone;
    return function == CallGraph::kNone ? Block() : bodyOf(function);
  }
  /// Returns the operations that `block` replaces, and whether XLA keeps none of its users.
  std::pair<std::vector<Operation>, bool> replacedBy(Block block) const {
    if (bodyOf(block.parentOp()) == block)
      return {{block.parentOp()}, true};
    const size_t *function = functions_.find(block.opaque());
    if (!function)
      return {};
    std::vector<Operation> calls;
    const CallGraph::Function &callee = graph_->functions()[*function];
    for (size_t site : callee.callers)
      if (Operation call = graph_->callSites()[site].op; bodyOf(call) == block)
        calls.push_back(call);
    return {calls, !callee.isRoot() && calls.size() == callee.callers.size()};
  }

private:
  Block bodyOf(size_t function) const {
    return graph_->functions()[function].op.regions()[0].firstBlock();
  }

  const CallGraph *graph_; // null: nothing is inlined
  const ir::OpIds &ids_;
  ir::PointerMap<size_t> functions_; // by body
};

/// The operations of a block with calls inlined. An inlined operation is there once for each call.
class FlatBlock {
public:
  std::vector<Operation> ops;
  /// The operations that compute the operands of each, and of those nested in it. All precede it.
  std::vector<std::vector<Index>> uses;

  /// Returns false if there are more than `maxOps` operations.
  bool fill(Block block, const Inliner &inliner, size_t maxOps) {
    std::vector<Frame> frames;
    frames.push_back({block.firstOp(), {}, block});
    for (size_t numVisited = 0; numVisited < maxOps; ++numVisited) {
      Frame &frame = frames.back();
      Operation op = frame.next;
      if (!op) {
        Frame done = std::move(frame);
        frames.pop_back();
        if (frames.empty())
          return true;
        if (Operation end = done.body.terminator())
          frames.back().pass(done.call.results(), done, end.operands());
        continue;
      }
      frame.next = op.nextInBlock();
      if (Block body = inliner.bodyOf(op)) {
        Frame callee{body.firstOp(), op, body};
        callee.pass(body.arguments(), frame, op.operands());
        frames.push_back(std::move(callee));
      } else {
        add(op, frame);
      }
    }
    return false;
  }

private:
  struct Frame {
    Operation next, call;
    Block body;
    ir::PointerMap<Index> by = {}; // by value: what computes it; none for values from outside
    /// Makes the values of `to` those that `from` has in another frame.
    template <class To, class From> void pass(const To &to, const Frame &frame, const From &from) {
      for (intptr_t i = 0; i < std::min(to.size(), from.size()); ++i)
        if (const Index *index = frame.by.find(Value(from[i]).opaque()))
          *by.insert(Value(to[i]).opaque()).first = *index;
    }
  };

  void add(Operation op, Frame &frame) {
    std::vector<Index> &used = uses.emplace_back();
    for (const ir::OpList::Item &user : ir::OpList(op))
      for (Value value : user.op.operands())
        if (const Index *index = frame.by.find(value.opaque()))
          used.push_back(*index);
    for (Value result : op.results())
      *frame.by.insert(result.opaque()).first = Index(ops.size());
    ops.push_back(op);
  }
};

/// Returns the strongly connected component of each node, named by one of its nodes, where node `n`
/// leads to `edges[n]`. Tarjan's algorithm; iterative, because dependences chain through the whole
/// program.
std::vector<Index> findComponents(const std::vector<std::vector<Index>> &edges) {
  struct Frame {
    Index node;
    size_t next;
  };
  std::vector<Index> order(edges.size(), kNone), low(edges.size()), component(edges.size(), kNone);
  std::vector<Index> open;
  std::vector<Frame> stack;
  Index numVisited = 0;
  for (Index root = 0; root < edges.size(); ++root) {
    if (order[root] == kNone)
      stack.push_back({root, 0});
    while (!stack.empty()) {
      auto &[node, next] = stack.back();
      if (order[node] == kNone) {
        order[node] = low[node] = numVisited++;
        open.push_back(node);
      }
      if (next < edges[node].size()) {
        Index to = edges[node][next];
        if (order[to] == kNone) {
          stack.push_back({to, 0}); // and read this edge again
          continue;
        }
        if (component[to] == kNone)
          low[node] = std::min(low[node], low[to]);
        ++next;
        continue;
      }
      Index done = node;
      stack.pop_back();
      while (low[done] == order[done] && component[done] == kNone) {
        component[open.back()] = done;
        open.pop_back();
      }
    }
  }
  return component;
}

/// Describes the cycle of `members`. `groups` has the group of each operation, or null. The first
/// member depends on none of the others, so it has a group.
Groups::Conflict describe(const FlatBlock &block, const std::vector<Index> &members,
                          const std::vector<Attribute> &groups, bool isScheduling) {
  std::string names, repeated;
  std::set<const void *> seenGroups, seenOps;
  for (Index member : members) {
    if (!groups[member])
      continue;
    Operation op = block.ops[member];
    if (seenGroups.insert(groups[member].opaque()).second)
      names += (names.empty() ? "" : ", ") + groups[member].str();
    if (!seenOps.insert(op.opaque()).second && repeated.empty())
      repeated = ir::concat({". ", quoteAt(op),
                             " is in a function that is called more than once, and XLA inlines "
                             "calls: tag the calls instead, each with another value"});
  }
  // What is outside the first group keeps it apart; else its second member does. Only collectives
  // can be members of their groups.
  auto keepsApart = [&](Index member) {
    return groups[member] != groups[members[0]] && (isScheduling || groups[member]);
  };
  auto isMember = [&](Index member) { return bool(groups[member]); };
  auto at = std::find_if(members.begin() + 1, members.end(), keepsApart);
  if (at == members.end())
    at = std::find_if(members.begin() + 1, members.end(), isMember);
  return {
      block.ops[*at],
      ir::concat({quote(block.ops[*at]), " and the ", isScheduling ? "scheduling" : "collective",
                  seenGroups.size() > 1 ? " groups " : " group ", names,
                  " depend on each other, from ", quoteAt(block.ops[members[0]]), " to ",
                  quoteAt(block.ops[members.back()]), ". XLA ",
                  isScheduling ? "schedules" : "launches",
                  " a group as a whole, and refuses this: give the later members another ",
                  isScheduling ? "id" : "key", groups[*at] ? "" : ", or tag this operation too",
                  repeated})};
}

/// Appends what depends on each other in `block` once each of `groups`, which has that of each
/// operation or null, is one. With `isScheduling`, members of a group may depend on each other.
void findCycles(const FlatBlock &block, const std::vector<Attribute> &groups, bool isScheduling,
                std::vector<Groups::Conflict> &conflicts) {
  std::vector<std::vector<Index>> edges = block.uses;
  ir::PointerMap<Index> firsts; // by group
  for (Index op = 0; op < edges.size(); ++op) {
    if (!groups[op])
      continue;
    // Members are in one component.
    auto [first, isNew] = firsts.insert(groups[op].opaque());
    *first = isNew ? op : *first;
    edges[op].push_back(*first);
    edges[*first].push_back(op);
  }
  std::vector<Index> components = findComponents(edges);
  std::vector<std::vector<Index>> members(edges.size()); // by component
  std::vector<bool> isCycle(edges.size());
  for (Index op = 0; op < edges.size(); ++op) {
    Index component = components[op];
    members[component].push_back(op);
    isCycle[component] = isCycle[component] || groups[op] != groups[members[component][0]];
    for (Index used : block.uses[op])
      isCycle[component] = isCycle[component] || (!isScheduling && components[used] == component);
  }
  for (Index op = 0; op < edges.size(); ++op)
    if (isCycle[components[op]] && members[components[op]][0] == op)
      conflicts.push_back(describe(block, members[components[op]], groups, isScheduling));
}

} // namespace

void Groups::add(Operation op, ir::DictionaryAttr entries) {
  auto textOf = [&](std::string_view key) {
    return ir::dynCast<ir::StringAttr>(entries.lookup(key));
  };
  Membership member;
  if (ir::StringAttr id = textOf(kSchedulingGroup); id && !groupOf(id.value()).empty()) {
    member.scheduling = id;
    ir::StringAttr order = textOf(kGroupOrder);
    member.keepsOrder = order && order.value() == "true";
  }
  if (ir::StringAttr key = textOf(kCollectiveGroup);
      key && !key.value().empty() && ids_.is(op.name(), ir::kCollective))
    member.collective = key;
  if (!member.scheduling && !member.collective)
    return;
  *members_.insert(op.opaque()).first = member;
  tagged_.push_back(op);
}

void Groups::checkOrder(const std::vector<Operation> &ops, std::vector<Conflict> &conflicts) const {
  ir::PointerMap<Operation> firsts; // by group
  std::set<const void *> reported;
  for (Operation op : ops) {
    const Membership *member = members_.find(op.opaque());
    if (!member || !member->scheduling)
      continue;
    auto [first, isNew] = firsts.insert(member->scheduling.opaque());
    if (isNew)
      *first = op;
    if (members_.find(first->opaque())->keepsOrder == member->keepsOrder ||
        !reported.insert(member->scheduling.opaque()).second)
      continue;
    Operation with = member->keepsOrder ? op : *first, without = member->keepsOrder ? *first : op;
    conflicts.push_back(
        {without,
         ir::concat({quote(without), " is in the scheduling group ", member->scheduling.str(),
                     " without '", kGroupOrder, "', which ", quoteAt(with),
                     (" in the same group has. XLA's scheduler aborts the process unless "
                      "all members have it or none: tag the group as a whole")})});
  }
}

std::optional<std::vector<Groups::Conflict>> Groups::conflicts(const CallGraph *graph,
                                                               size_t maxInlined) const {
  Inliner inliner(graph, ids_);
  std::vector<Block> outermost; // with a member, also of what they inline
  std::vector<Operation> pending(tagged_.rbegin(), tagged_.rend());
  ir::PointerMap<bool> seen;
  while (!pending.empty()) {
    Block block = pending.back().block();
    pending.pop_back();
    if (!seen.insert(block.opaque()).second)
      continue;
    auto [replaced, isInlinedOnly] = inliner.replacedBy(block);
    pending.insert(pending.end(), replaced.begin(), replaced.end());
    if (!isInlinedOnly)
      outermost.push_back(block);
  }
  std::vector<Conflict> found;
  for (Block block : outermost) {
    FlatBlock flat;
    if (!flat.fill(block, inliner, maxInlined))
      return {};
    maxInlined -= flat.ops.size();
    for (auto kind : {&Membership::scheduling, &Membership::collective}) {
      std::vector<Attribute> groups;
      for (Operation op : flat.ops) {
        const Membership *member = members_.find(op.opaque());
        groups.push_back(member ? member->*kind : Attribute());
      }
      findCycles(flat, groups, kind == &Membership::scheduling, found);
    }
    checkOrder(flat.ops, found);
  }
  return found;
}

} // namespace hlotag::analysis
