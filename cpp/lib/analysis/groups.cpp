// SPDX-License-Identifier: Apache-2.0
#include "groups.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <unordered_set>

namespace hlotag::analysis {

using ir::Attribute;
using ir::Operation;
using Index = InlinedBlock::Index;

namespace {

constexpr std::string_view kGroupOrder = "keep_original_sequence_order_in_group";

std::string quote(Operation op) { return ir::concat({"'", op.name().str(), "'"}); }
std::string quoteAt(Operation op) {
  return ir::concat({quote(op), " at ", ir::render(op.location())});
}

/// Returns the group that a value of `_scheduling_group_id` names: `4` for `4:1`. Empty for values
/// without a group, `noop` and `:1`.
std::string_view groupOf(std::string_view value) {
  return value == "noop" ? std::string_view() : value.substr(0, value.find(':'));
}

/// The dependence graph of a block, with one node per group. A group that can be scheduled as a
/// whole is on no cycle.
class Graph {
public:
  /// `groups` has the group of each operation, or null.
  Graph(const InlinedBlock &block, const std::vector<Attribute> &groups) {
    for (Index op = 0; op < groups.size(); ++op)
      add(block.uses(op), groups[op]);
    component_.assign(users_.size(), kNone);
    order_.assign(users_.size(), kNone);
    low_.assign(users_.size(), 0);
    for (Node node = 0; node < users_.size(); ++node)
      if (order_[node] == kNone)
        visit(node);
  }

  /// Returns the operations on each cycle, in order, by the first of them. With `within`, members
  /// of a group that depend on each other are a cycle.
  std::vector<std::vector<Index>> cycles(bool within) const {
    std::vector<size_t> numNodes(users_.size());
    for (Node component : component_)
      ++numNodes[component];
    std::vector<std::vector<Index>> found;
    std::map<Node, size_t> known; // by component
    for (Index op = 0; op < nodeOf_.size(); ++op) {
      Node node = nodeOf_[op];
      if (numNodes[component_[node]] == 1 && !(within && usesItself_[node]))
        continue;
      auto [cycle, isNew] = known.try_emplace(component_[node], found.size());
      if (isNew)
        found.emplace_back();
      found[cycle->second].push_back(op);
    }
    return found;
  }

private:
  using Node = uint32_t;
  static constexpr Node kNone = std::numeric_limits<Node>::max();

  void add(const std::vector<Index> &uses, Attribute group);
  void visit(Node root);

  std::vector<Node> nodeOf_;             // by operation
  std::vector<std::vector<Node>> users_; // by node
  std::vector<bool> usesItself_;         // by node
  std::vector<Node> component_;          // by node
  ir::PointerMap<Node> nodeOfGroup_;

  // Of Tarjan's algorithm, by node.
  std::vector<Node> order_, low_;
  std::vector<Node> open_;
  Node numVisited_ = 0;
};

void Graph::add(const std::vector<Index> &uses, Attribute group) {
  Node node = Node(users_.size());
  if (group) {
    auto [slot, isNew] = nodeOfGroup_.insert(group.opaque());
    if (isNew)
      *slot = node;
    node = *slot;
  }
  if (node == users_.size()) {
    users_.emplace_back();
    usesItself_.push_back(false);
  }
  nodeOf_.push_back(node);
  for (Index used : uses) {
    if (nodeOf_[used] == node)
      usesItself_[node] = true;
    else
      users_[nodeOf_[used]].push_back(node);
  }
}

/// Tarjan's algorithm. Iterative, because dependences chain through the whole program.
void Graph::visit(Node root) {
  struct Frame {
    Node node;
    size_t nextUser;
  };
  auto enter = [&](Node node) {
    order_[node] = low_[node] = numVisited_++;
    open_.push_back(node);
  };
  std::vector<Frame> stack{{root, 0}};
  enter(root);
  while (!stack.empty()) {
    auto &[node, nextUser] = stack.back();
    if (nextUser < users_[node].size()) {
      Node user = users_[node][nextUser++];
      if (order_[user] == kNone) {
        enter(user);
        stack.push_back({user, 0});
      } else if (component_[user] == kNone) {
        low_[node] = std::min(low_[node], order_[user]);
      }
      continue;
    }
    Node done = node;
    stack.pop_back();
    if (!stack.empty())
      low_[stack.back().node] = std::min(low_[stack.back().node], low_[done]);
    if (low_[done] != order_[done])
      continue;
    for (Node member = kNone; member != done; open_.pop_back()) {
      member = open_.back();
      component_[member] = done;
    }
  }
}

/// Describes the cycle of `ops`, each with its group or null. The first one depends on none of the
/// others, so it is a member.
Groups::Conflict describe(const std::vector<Operation> &ops, const std::vector<Attribute> &groups,
                          bool isScheduling) {
  std::vector<Attribute> names;
  std::unordered_set<const void *> seen;
  std::string repeated;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (!groups[i])
      continue;
    if (std::find(names.begin(), names.end(), groups[i]) == names.end())
      names.push_back(groups[i]);
    if (!seen.insert(ops[i].opaque()).second && repeated.empty())
      repeated = quoteAt(ops[i]);
  }
  std::string group = isScheduling ? "scheduling group" : "collective group";
  for (size_t i = 0; i < names.size(); ++i)
    group += (i == 0                  ? names.size() > 1 ? "s " : " "
              : i + 1 == names.size() ? " and "
                                      : ", ") +
             names[i].str();
  // What is outside the first group keeps it apart; else its second member does. Only collectives
  // can be members of their groups.
  auto isOther = [&](Attribute of) { return of != groups[0] && (isScheduling || of); };
  auto isMember = [](Attribute of) { return bool(of); };
  auto other = std::find_if(groups.begin(), groups.end(), isOther);
  if (other == groups.end())
    other = std::find_if(groups.begin() + 1, groups.end(), isMember);
  auto at = size_t(other - groups.begin());
  std::string message = ir::concat(
      {quote(ops[at]), " and the ", group, " depend on each other, from ", quoteAt(ops[0]), " to ",
       quoteAt(ops.back()), ". XLA ", isScheduling ? "schedules" : "launches",
       " a group as a whole, and refuses this: give the later members another ",
       isScheduling ? "id" : "key", groups[at] ? "" : ", or tag this operation too"});
  if (!repeated.empty())
    message += ir::concat({". ", repeated,
                           " is in a function that is called more than once, and XLA inlines "
                           "calls: tag the calls instead, each with another value"});
  return {ops[at], std::move(message)};
}

} // namespace

void Groups::add(Operation op, ir::DictionaryAttr entries, const ir::OpIds &ids) {
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
      key && !key.value().empty() && ids.is(op.name(), ir::kCollective))
    member.collective = key;
  if (!member.scheduling && !member.collective)
    return;
  *members_.insert(op.opaque()).first = member;
  extend(blocks_, indices_, op, ids);
}

void Groups::extend(Ranges &ranges, ir::PointerMap<size_t> &known, Operation op,
                    const ir::OpIds &ids) {
  while (extendBlock(ranges, known, op)) {
    op = op.parent();
    if (op.name() != ids.manualComputation)
      return;
  }
}

bool Groups::extendBlock(Ranges &ranges, ir::PointerMap<size_t> &known, Operation op) {
  auto [index, isNew] = known.insert(op.block().opaque());
  if (isNew) {
    *index = ranges.size();
    ranges.push_back({op.block(), op, op});
    return true;
  }
  Range &range = ranges[*index];
  if (op.isBefore(range.first))
    range.first = op;
  else if (range.last.isBefore(op))
    range.last = op;
  else
    return false;
  return true;
}

void Groups::findCycles(const InlinedBlock &block, Attribute Membership::*kind,
                        std::vector<Conflict> &conflicts) const {
  std::vector<Attribute> groups;
  for (Operation op : block.ops()) {
    const Membership *member = members_.find(op.opaque());
    groups.push_back(member ? member->*kind : Attribute());
  }
  bool isScheduling = kind == &Membership::scheduling;
  for (const std::vector<Index> &cycle : Graph(block, groups).cycles(/*within=*/!isScheduling)) {
    std::vector<Operation> ops;
    std::vector<Attribute> of;
    for (Index op : cycle) {
      ops.push_back(block.ops()[op]);
      of.push_back(groups[op]);
    }
    conflicts.push_back(describe(ops, of, isScheduling));
  }
}

void Groups::checkOrder(const InlinedBlock &block, std::vector<Conflict> &conflicts) const {
  ir::PointerMap<Operation> firsts; // by group
  std::set<const void *> reported;
  for (Operation op : block.ops()) {
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

bool Groups::find(const Ranges &ranges, const InlinedCalls &calls, size_t maxOps,
                  std::vector<Conflict> &conflicts) const {
  for (const Range &range : ranges) {
    if (calls.isInlinedOnly(range.block))
      continue; // checked where it is called
    InlinedBlock block(range.first, range.last, calls, maxOps);
    if (!block.isComplete())
      return false;
    maxOps -= block.ops().size();
    findCycles(block, &Membership::scheduling, conflicts);
    findCycles(block, &Membership::collective, conflicts);
    checkOrder(block, conflicts);
  }
  return true;
}

std::vector<Groups::Conflict> Groups::conflicts(const CallGraph &graph, const ir::OpIds &ids,
                                                size_t maxInlined) {
  InlinedCalls calls(graph, ids);
  Ranges ranges = blocks_;
  ir::PointerMap<size_t> known = indices_;
  // A call that leads to members extends the range of its block.
  for (size_t f : graph.calleesFirst())
    for (size_t site : graph.functions()[f].calls)
      if (ir::Block body = calls.bodyOf(graph.callSites()[site].op);
          body && known.find(body.opaque()))
        extend(ranges, known, graph.callSites()[site].op, ids);
  std::vector<Conflict> found;
  inlinesCalls_ = find(ranges, calls, maxInlined, found);
  if (inlinesCalls_)
    return found;
  found.clear();
  (void)find(blocks_, InlinedCalls(), std::numeric_limits<size_t>::max(), found);
  return found;
}

} // namespace hlotag::analysis
