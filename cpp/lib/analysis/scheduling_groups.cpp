// SPDX-License-Identifier: Apache-2.0
#include "analysis/scheduling_groups.h"

#include <algorithm>
#include <limits>

namespace hlotag::analysis {

using ir::Attribute;
using ir::Operation;

std::string_view groupOf(std::string_view value) {
  return value == "noop" ? std::string_view() : value.substr(0, value.find(':'));
}

void SchedulingGroups::add(Operation op, ir::DictionaryAttr entries) {
  auto id = ir::dynCast<ir::StringAttr>(entries.lookup(kSchedulingGroup));
  if (!id || groupOf(id.value()).empty())
    return;
  auto order = ir::dynCast<ir::StringAttr>(entries.lookup(kGroupOrder));
  auto [slot, isNew] = known_.try_emplace(op.block().opaque(), blocks_.size());
  if (isNew)
    blocks_.push_back({op.block(), {}});
  blocks_[slot->second].members.push_back({op, id, order && order.value() == "true"});
}

/// The dependences within a block from the first member to the last, each group being one node. A
/// group that can be scheduled as a whole is on no cycle.
class SchedulingGroups::Graph {
public:
  explicit Graph(const Members &block) : block_(block.block) {
    ir::PointerMap<Attribute> groups;
    for (const Member &member : block.members)
      *groups.insert(member.op.opaque()).first = member.group;
    Operation last = block.members.back().op;
    for (Operation op = block.members.front().op;; op = op.nextInBlock()) {
      Attribute *group = groups.find(op.opaque());
      addNode(op, group ? *group : Attribute());
      if (op == last)
        break;
    }
    findComponents();
  }

  void report(std::vector<Conflict> &conflicts) const;

private:
  using Node = uint32_t;
  static constexpr Node kNone = std::numeric_limits<Node>::max();

  void addNode(Operation op, Attribute group);
  void findComponents();
  void visit(Node root);
  bool isMember(size_t op) const { return bool(groups_[nodeOf_[op]]); }
  /// A member that depends on the operation, which is none and is in a cycle.
  size_t dependentOf(size_t outside) const;
  Conflict describeGap(const std::vector<size_t> &cycle) const;
  Conflict describeCycle(const std::vector<size_t> &cycle) const;

  ir::Block block_;
  std::vector<Operation> ops_;
  std::vector<Node> nodeOf_;             // by operation
  std::vector<Attribute> groups_;        // by node; null: not of a group
  std::vector<std::vector<Node>> users_; // by node
  std::vector<Node> component_;          // by node
  ir::PointerMap<uint32_t> placeOf_;     // of operations in `ops_`
  ir::PointerMap<Node> nodeOfGroup_;

  // Of Tarjan's algorithm, by node.
  std::vector<Node> order_, low_;
  std::vector<Node> open_;
  Node numVisited_ = 0;
};

void SchedulingGroups::Graph::addNode(Operation op, Attribute group) {
  Node node = Node(groups_.size());
  if (group) {
    auto [slot, isNew] = nodeOfGroup_.insert(group.opaque());
    if (isNew)
      *slot = node;
    node = *slot;
  }
  if (node == groups_.size()) {
    groups_.push_back(group);
    users_.emplace_back();
  }
  *placeOf_.insert(op.opaque()).first = uint32_t(ops_.size());
  ops_.push_back(op);
  nodeOf_.push_back(node);
  ir::forEachOperand(op, [&](Operation, intptr_t, ir::Value value) {
    Operation definition = value.definingOp();
    uint32_t *place = definition ? placeOf_.find(definition.opaque()) : nullptr;
    if (place && nodeOf_[*place] != node)
      users_[nodeOf_[*place]].push_back(node);
  });
}

void SchedulingGroups::Graph::findComponents() {
  component_.assign(groups_.size(), kNone);
  order_.assign(groups_.size(), kNone);
  low_.assign(groups_.size(), 0);
  for (Node node = 0; node < groups_.size(); ++node)
    if (order_[node] == kNone)
      visit(node);
}

/// Tarjan's algorithm, with a stack of our own: dependences chain through the whole program.
void SchedulingGroups::Graph::visit(Node root) {
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

void SchedulingGroups::Graph::report(std::vector<Conflict> &conflicts) const {
  // Components of more than one node, each with its operations in order.
  std::vector<size_t> numNodes(groups_.size());
  for (Node component : component_)
    ++numNodes[component];
  std::vector<Node> found;
  std::unordered_map<Node, std::vector<size_t>> cycles;
  for (size_t op = 0; op < ops_.size(); ++op) {
    Node component = component_[nodeOf_[op]];
    if (numNodes[component] < 2)
      continue;
    auto [slot, isNew] = cycles.try_emplace(component);
    if (isNew)
      found.push_back(component);
    slot->second.push_back(op);
  }
  for (Node component : found) {
    const std::vector<size_t> &cycle = cycles[component];
    auto isOther = [&](size_t op) { return isMember(op) && nodeOf_[op] != nodeOf_[cycle[0]]; };
    bool isGap = std::none_of(cycle.begin(), cycle.end(), isOther);
    conflicts.push_back(isGap ? describeGap(cycle) : describeCycle(cycle));
  }
}

size_t SchedulingGroups::Graph::dependentOf(size_t outside) const {
  std::vector<bool> isReached(ops_.size());
  isReached[outside] = true;
  // Operations come after what they use.
  for (size_t op = outside + 1;; ++op) {
    if (component_[nodeOf_[op]] != component_[nodeOf_[outside]])
      continue;
    bool depends = false;
    ir::forEachOperand(ops_[op], [&](Operation, intptr_t, ir::Value value) {
      Operation definition = value.definingOp();
      const uint32_t *place = definition ? placeOf_.find(definition.opaque()) : nullptr;
      depends |= place && isReached[*place];
    });
    if (depends && isMember(op))
      return op;
    isReached[op] = depends;
  }
}

std::string quoted(Operation op) { return "'" + std::string(op.name().str()) + "'"; }

SchedulingGroups::Conflict
SchedulingGroups::Graph::describeGap(const std::vector<size_t> &cycle) const {
  // The first operation of a cycle depends on none before it, so it is a member, and the first that
  // is none depends on a member.
  auto outside =
      std::find_if_not(cycle.begin(), cycle.end(), [&](size_t op) { return isMember(op); });
  Operation dependent = ops_[dependentOf(*outside)];
  return {ops_[*outside],
          quoted(ops_[*outside]) + " is not in the scheduling group " +
              groups_[nodeOf_[cycle[0]]].str() + ", but depends on it, and " + quoted(dependent) +
              " at " + ir::render(dependent.location()) +
              ", which is in it, depends on this operation. XLA's schedulers refuse groups with "
              "such gaps: tag this operation too, or give the later part of the group another id"};
}

SchedulingGroups::Conflict
SchedulingGroups::Graph::describeCycle(const std::vector<size_t> &cycle) const {
  std::vector<Node> groups;
  size_t second = cycle[0];
  for (size_t op : cycle) {
    if (!isMember(op) || std::find(groups.begin(), groups.end(), nodeOf_[op]) != groups.end())
      continue;
    groups.push_back(nodeOf_[op]);
    if (groups.size() == 2)
      second = op;
  }
  std::string names;
  for (size_t i = 0; i < groups.size(); ++i)
    names += (i == 0 ? "" : i + 1 == groups.size() ? " and " : ", ") + groups_[groups[i]].str();
  return {ops_[second],
          quoted(ops_[second]) + " is where a cycle shows: the scheduling groups " + names +
              " depend on each other, so none can be scheduled as a whole. XLA's schedulers refuse "
              "them: give what comes after the other group another id"};
}

void SchedulingGroups::checkOrder(const Members &block, std::vector<Conflict> &conflicts) {
  struct Seen {
    Operation with, without;
  };
  ir::PointerMap<Seen> groups;
  std::vector<Attribute> inOrder;
  for (const Member &member : block.members) {
    auto [seen, isNew] = groups.insert(member.group.opaque());
    if (isNew)
      inOrder.push_back(member.group);
    Operation &first = member.keepsOrder ? seen->with : seen->without;
    if (!first)
      first = member.op;
  }
  for (Attribute group : inOrder) {
    const Seen &seen = *groups.find(group.opaque());
    if (seen.with && seen.without)
      conflicts.push_back(
          {seen.without, quoted(seen.without) + " is in the scheduling group " + group.str() +
                             " without '" + std::string(kGroupOrder) + "', which " +
                             quoted(seen.with) + " at " + ir::render(seen.with.location()) +
                             " in the same group has. XLA's scheduler aborts the process unless "
                             "all members have it or none: tag the group as a whole"});
  }
}

std::vector<SchedulingGroups::Conflict> SchedulingGroups::conflicts() const {
  std::vector<Conflict> conflicts;
  for (const Members &block : blocks_) {
    if (block.members.size() < 2)
      continue;
    Graph(block).report(conflicts);
    checkOrder(block, conflicts);
  }
  return conflicts;
}

} // namespace hlotag::analysis
