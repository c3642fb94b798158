// SPDX-License-Identifier: Apache-2.0
#include "groups.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>

namespace hlotag::analysis {

using ir::Attribute;
using ir::Operation;
using Place = InlinedBlock::Place;

namespace {

constexpr std::string_view kGroupOrder = "keep_original_sequence_order_in_group";

std::string quoted(Operation op) { return ir::concat({"'", op.name().str(), "'"}); }
std::string quotedAt(Operation op) {
  return ir::concat({quoted(op), " at ", ir::render(op.location())});
}

/// Returns the group that a value of `_scheduling_group_id` names: `4` for `4:1`. Empty for values
/// without a group, `noop` and `:1`.
std::string_view groupOf(std::string_view value) {
  return value == "noop" ? std::string_view() : value.substr(0, value.find(':'));
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
  extend(blocks_, places_, op);
}

void Groups::extend(std::vector<Range> &ranges, ir::PointerMap<size_t> &known, Operation op) {
  auto [place, isNew] = known.insert(op.block().opaque());
  if (isNew) {
    *place = ranges.size();
    ranges.push_back({op.block(), op, op});
    return;
  }
  Range &range = ranges[*place];
  if (op.isBefore(range.first))
    range.first = op;
  if (range.last.isBefore(op))
    range.last = op;
}

/// The dependence graph of a block, with one node per group. A group that can be scheduled as a
/// whole is on no cycle.
class Groups::Graph {
public:
  Graph(const Groups &groups, const InlinedBlock &block, Kind kind) : block_(block), kind_(kind) {
    for (Operation op : block.ops()) {
      const Membership *member = groups.members_.find(op.opaque());
      addNode(member ? member->of(kind) : Attribute());
    }
    findComponents();
  }

  void report(std::vector<Conflict> &conflicts) const;

private:
  using Node = uint32_t;
  using Component = std::vector<Place>; // its places, in order
  static constexpr Node kNone = std::numeric_limits<Node>::max();

  Operation op(Place place) const { return block_.ops()[place]; }
  bool isMember(Place place) const { return bool(groups_[nodeOf_[place]]); }
  std::string nameOf(Place place) const {
    return std::string(kind_ == Kind::Scheduling ? "scheduling" : "collective") + " group " +
           groups_[nodeOf_[place]].str();
  }

  void addNode(Attribute group);
  void findComponents();
  void visit(Node root);
  /// Returns the first place in a component that depends on a source and for which `isWanted`, and
  /// that source.
  template <class Source, class Wanted>
  std::pair<Place, Place> firstDependent(const Component &component, Source isSource,
                                         Wanted isWanted) const;
  Conflict describeGap(const Component &component) const;
  Conflict describeDependence(const Component &component) const;
  Conflict describeCycle(const Component &component) const;
  std::string adviceOnCalls(const Component &component) const;

  const InlinedBlock &block_;
  Kind kind_;
  std::vector<Node> nodeOf_;             // by place
  std::vector<Attribute> groups_;        // by node; null outside groups
  std::vector<std::vector<Node>> users_; // by node
  std::vector<bool> usesItself_;         // by node
  std::vector<Node> component_;          // by node
  ir::PointerMap<Node> nodeOfGroup_;

  // Of Tarjan's algorithm, by node.
  std::vector<Node> order_, low_;
  std::vector<Node> open_;
  Node numVisited_ = 0;
};

void Groups::Graph::addNode(Attribute group) {
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
    usesItself_.push_back(false);
  }
  nodeOf_.push_back(node);
  block_.forEachUse(Place(nodeOf_.size() - 1), [&](Place used) {
    if (nodeOf_[used] == node)
      usesItself_[node] = true;
    else
      users_[nodeOf_[used]].push_back(node);
  });
}

void Groups::Graph::findComponents() {
  component_.assign(groups_.size(), kNone);
  order_.assign(groups_.size(), kNone);
  low_.assign(groups_.size(), 0);
  for (Node node = 0; node < groups_.size(); ++node)
    if (order_[node] == kNone)
      visit(node);
}

/// Tarjan's algorithm. Iterative, because dependences chain through the whole program.
void Groups::Graph::visit(Node root) {
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

void Groups::Graph::report(std::vector<Conflict> &conflicts) const {
  std::vector<size_t> numNodes(groups_.size());
  for (Node component : component_)
    ++numNodes[component];
  auto isConflict = [&](Node node) {
    // Members of a scheduling group may depend on each other.
    return numNodes[component_[node]] > 1 || (kind_ == Kind::Collective && usesItself_[node]);
  };
  std::vector<Node> found;
  std::unordered_map<Node, Component> components;
  for (Place place = 0; place < nodeOf_.size(); ++place) {
    if (!isConflict(nodeOf_[place]))
      continue;
    auto [slot, isNew] = components.try_emplace(component_[nodeOf_[place]]);
    if (isNew)
      found.push_back(slot->first);
    slot->second.push_back(place);
  }
  for (Node number : found) {
    const Component &component = components[number];
    // The first operation depends on none before it, so it is a member.
    bool isOneGroup = std::all_of(component.begin(), component.end(), [&](Place place) {
      return !isMember(place) || nodeOf_[place] == nodeOf_[component[0]];
    });
    Conflict conflict = !isOneGroup                 ? describeCycle(component)
                        : kind_ == Kind::Scheduling ? describeGap(component)
                                                    : describeDependence(component);
    conflict.message += adviceOnCalls(component);
    conflicts.push_back(std::move(conflict));
  }
}

template <class Source, class Wanted>
std::pair<Place, Place> Groups::Graph::firstDependent(const Component &component, Source isSource,
                                                      Wanted isWanted) const {
  std::unordered_map<Place, Place> sourceOf;
  for (Place place : component) {
    Place source = InlinedBlock::kNone;
    block_.forEachUse(place, [&](Place used) {
      auto through = sourceOf.find(used);
      if (through != sourceOf.end())
        source = through->second;
    });
    if (source != InlinedBlock::kNone && isWanted(place))
      return {place, source};
    if (isSource(place))
      source = place;
    if (source != InlinedBlock::kNone)
      sourceOf[place] = source;
  }
  return {component.back(), component.front()};
}

Groups::Conflict Groups::Graph::describeGap(const Component &component) const {
  // The first operation outside the group depends on a member.
  auto isMember = [&](Place place) { return this->isMember(place); };
  Place outside = *std::find_if_not(component.begin(), component.end(), isMember);
  Place dependent =
      firstDependent(component, [&](Place place) { return place == outside; }, isMember).first;
  return {
      op(outside),
      ir::concat({quoted(op(outside)), " is not in the ", nameOf(component[0]),
                  ", but depends on it, and ", quotedAt(op(dependent)),
                  (", which is in it, depends on this operation. XLA's schedulers refuse groups "
                   "with such gaps: tag this operation too, or give the later part of the group "
                   "another id")})};
}

Groups::Conflict Groups::Graph::describeDependence(const Component &component) const {
  auto isMember = [&](Place place) { return this->isMember(place); };
  auto [dependent, source] = firstDependent(component, isMember, isMember);
  return {op(dependent),
          ir::concat({quoted(op(dependent)), " is in the ", nameOf(dependent), ", but depends on ",
                      quotedAt(op(source)),
                      (", which is in it too. XLA launches a group at once, and refuses one whose "
                       "members are not independent: give this operation another key")})};
}

Groups::Conflict Groups::Graph::describeCycle(const Component &component) const {
  std::vector<Node> groups;
  std::vector<Place> firstOf; // of each group
  for (Place place : component) {
    if (!isMember(place) || std::find(groups.begin(), groups.end(), nodeOf_[place]) != groups.end())
      continue;
    groups.push_back(nodeOf_[place]);
    firstOf.push_back(place);
  }
  std::string names;
  for (size_t i = 0; i < groups.size(); ++i)
    names += (i == 0 ? "" : i + 1 == groups.size() ? " and " : ", ") + groups_[groups[i]].str();
  bool isScheduling = kind_ == Kind::Scheduling;
  return {op(firstOf[1]),
          ir::concat({quoted(op(firstOf[1])), " is in a cycle: the ",
                      isScheduling ? "scheduling" : "collective", " groups ", names,
                      " depend on each other, so none can be ",
                      isScheduling
                          ? "scheduled as a whole. XLA's schedulers refuse them: give the members "
                            "after the other group another id"
                          : "launched at once. XLA refuses them: give the members after the other "
                            "group another key"})};
}

std::string Groups::Graph::adviceOnCalls(const Component &component) const {
  std::unordered_set<const void *> ops;
  for (Place place : component)
    if (isMember(place) && !ops.insert(op(place).opaque()).second)
      return ir::concat({". ", quotedAt(op(place)),
                         " is in a function that is called more than once, and XLA inlines calls: "
                         "tag the calls instead, each with another value"});
  return {};
}

void Groups::checkOrder(const InlinedBlock &block, std::vector<Conflict> &conflicts) const {
  struct Seen {
    Operation with, without;
  };
  ir::PointerMap<Seen> groups;
  std::vector<Attribute> inOrder;
  for (Operation op : block.ops()) {
    const Membership *member = members_.find(op.opaque());
    if (!member || !member->scheduling)
      continue;
    auto [seen, isNew] = groups.insert(member->scheduling.opaque());
    if (isNew)
      inOrder.push_back(member->scheduling);
    Operation &first = member->keepsOrder ? seen->with : seen->without;
    if (!first)
      first = op;
  }
  for (Attribute group : inOrder) {
    const Seen &seen = *groups.find(group.opaque());
    if (seen.with && seen.without)
      conflicts.push_back(
          {seen.without,
           ir::concat({quoted(seen.without), " is in the scheduling group ", group.str(),
                       " without '", kGroupOrder, "', which ", quotedAt(seen.with),
                       (" in the same group has. XLA's scheduler aborts the process "
                        "unless all members have it or none: tag the group as a "
                        "whole")})});
  }
}

bool Groups::find(const std::vector<Range> &ranges, const InlinedCalls &calls, size_t maxOps,
                  std::vector<Conflict> &conflicts) const {
  for (const Range &range : ranges) {
    if (calls.isInlinedOnly(range.block))
      continue; // checked where it is called
    InlinedBlock block(range.first, range.last, calls, maxOps);
    if (!block.isComplete())
      return false;
    maxOps -= block.ops().size();
    Graph(*this, block, Kind::Scheduling).report(conflicts);
    Graph(*this, block, Kind::Collective).report(conflicts);
    checkOrder(block, conflicts);
  }
  return true;
}

std::vector<Groups::Conflict> Groups::conflicts(const CallGraph &graph, const ir::OpIds &ids,
                                                const ir::TagWriter &tags, size_t maxInlined) {
  InlinedCalls calls(graph, ids, tags);
  std::vector<Range> ranges = blocks_;
  ir::PointerMap<size_t> known = places_;
  // A call that leads to members extends the range of its block.
  for (size_t f : graph.calleesFirst())
    for (size_t site : graph.functions()[f].calls)
      if (ir::Block body = calls.bodyOf(graph.callSites()[site].op);
          body && known.find(body.opaque()))
        extend(ranges, known, graph.callSites()[site].op);
  std::vector<Conflict> found;
  inlinesCalls_ = find(ranges, calls, maxInlined, found);
  if (inlinesCalls_)
    return found;
  found.clear();
  (void)find(blocks_, InlinedCalls(), std::numeric_limits<size_t>::max(), found);
  return found;
}

} // namespace hlotag::analysis
