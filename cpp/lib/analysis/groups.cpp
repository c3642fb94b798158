// SPDX-License-Identifier: Apache-2.0
#include "groups.h"

#include "hlotag/analysis/call_graph.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>
#include <vector>

namespace hlotag::analysis {

using ir::Attribute;
using ir::Block;
using ir::Operation;
using ir::Value;

using Index = uint32_t;

namespace {

constexpr std::string_view kGroupOrder = "keep_original_sequence_order_in_group";
constexpr Index kNoOp = std::numeric_limits<Index>::max();
constexpr size_t kMaxInlined = 1'000'000;

std::string quote(Operation op) { return ir::concat({"'", op.name().str(), "'"}); }
std::string quoteAt(Operation op) {
  return ir::concat({quote(op), " at ", ir::render(op.location())});
}

/// `"1", "2", "3" and 4 more`.
std::string listSome(const std::set<std::string> &groups) {
  constexpr size_t kShown = 3;
  std::vector<std::string> shown;
  for (const std::string &group : groups)
    if (shown.size() < kShown)
      shown.push_back(group);
  size_t numLeft = groups.size() - shown.size();
  std::string more = numLeft ? ir::concat({" and ", std::to_string(numLeft), " more"}) : "";
  return ir::join(shown, ", ") + more;
}

/// The text of an entry; empty if there is none.
std::string_view textOf(Operation op, std::string_view key) {
  auto entries = op.attrOf<ir::DictionaryAttr>(ir::kFrontendAttributes);
  auto text = ir::dynCast<ir::StringAttr>(entries ? entries.lookup(key) : Attribute());
  return text ? text.value() : std::string_view();
}

using Edges = std::vector<std::vector<Index>>;

/// Removes nodes that lead to none that is left, until each leads to another one. Iterative,
/// because dependences chain through the whole program.
void peel(const Edges &to, const Edges &from, std::vector<bool> &isLeft) {
  std::vector<size_t> numLeft(to.size());
  std::vector<Index> pending;
  for (Index node = 0; node < to.size(); ++node) {
    numLeft[node] = size_t(std::count_if(to[node].begin(), to[node].end(),
                                         [&](Index other) { return isLeft[other]; }));
    if (numLeft[node] == 0 && isLeft[node])
      pending.push_back(node);
  }
  while (!pending.empty()) {
    Index node = pending.back();
    pending.pop_back();
    isLeft[node] = false;
    for (Index other : from[node])
      if (--numLeft[other] == 0 && isLeft[other])
        pending.push_back(other);
  }
}

class Checker {
public:
  Checker(const ir::OpList &operations, const ir::OpIds &ids, const CallGraph &calls)
      : ids_(ids), graph_(calls) {
    for (const ir::OpList::Item &item : operations)
      if (groupOf(item.op, kSchedulingGroup) || groupOf(item.op, kCollectiveGroup))
        members_.push_back(item.op);
  }

  /// Returns false if there are too many operations.
  bool run() {
    for (Block block : outermost()) {
      ops_.clear();
      uses_.clear();
      if (!flatten(block))
        return false;
      findCycle(kSchedulingGroup, "scheduling");
      findCycle(kCollectiveGroup, "collective");
      checkOrder();
    }
    return true;
  }

  std::vector<GroupConflict> conflicts;

private:
  /// Returns the value that names the group of `op`, or null. `4:1` and `4:2` are two groups;
  /// `noop` and `:1` are none.
  Attribute groupOf(Operation op, std::string_view key) const {
    std::string_view text = textOf(op, key);
    bool isGroup = key == kSchedulingGroup ? text != "noop" && text.substr(0, 1) != ":"
                                           : ids_.is(op.name(), ir::kCollective);
    return isGroup && !text.empty() ? ir::TagWriter::get(op).lookup(key) : Attribute();
  }

  /// Returns the body that replaces a call, a composite or a shard_map; null if XLA keeps `op`.
  Block bodyOf(Operation op) const {
    bool isManual = op.name() == ids_.manualComputation;
    if (!(isManual || ids_.is(op.name(), ir::kInlined)) || textOf(op, "inlineable") == "false")
      return {};
    if (isManual)
      return op.regions()[0].firstBlock();
    auto callee = op.attrOf<ir::FlatSymbolRefAttr>(ids_.calleesOf(op.name()).str());
    size_t function = callee ? graph_.find(callee.value()) : CallGraph::kNoFunction;
    return function == CallGraph::kNoFunction
               ? Block()
               : graph_.functions()[function].op.regions()[0].firstBlock();
  }

  /// Returns the blocks with a member, also of what they inline, that are computations of XLA's.
  std::vector<Block> outermost() const {
    std::vector<Block> found;
    std::vector<Operation> pending(members_.rbegin(), members_.rend());
    ir::PointerMap<bool> seen;
    while (!pending.empty()) {
      Block block = pending.back().block();
      pending.pop_back();
      if (!seen.insert(block.opaque()).second)
        continue;
      std::vector<Operation> users{block.parentOp()};
      bool isOutermost = false;
      if (const size_t *function = graph_.find(block.parentOp())) {
        users.clear();
        for (size_t site : graph_.functions()[*function].callers)
          users.push_back(graph_.callSites()[site].op);
        isOutermost = graph_.functions()[*function].isRoot();
      }
      for (Operation user : users) {
        if (bodyOf(user) == block)
          pending.push_back(user);
        else
          isOutermost = true;
      }
      if (isOutermost)
        found.push_back(block);
    }
    return found;
  }

  /// Sets `ops_` and `uses_`: the operations of a block with calls inlined. An inlined operation is
  /// there once for each call.
  bool flatten(Block block) {
    struct Frame {
      Operation next, call;
      Block body;
    };
    std::vector<Frame> frames{{block.firstOp(), {}, block}};
    // What computes each value; none if it comes from outside. An inlined body's are those of its
    // last call.
    ir::PointerMap<Index> by;
    auto sourceOf = [&](Value value) {
      const Index *index = by.find(value.opaque());
      return index ? *index : kNoOp;
    };
    for (; !frames.empty(); ++numInlined_) {
      if (numInlined_ == kMaxInlined)
        return false;
      auto [op, call, body] = frames.back();
      if (!op) {
        for (intptr_t i = 0; call && i < call.results().size(); ++i)
          *by.insert(call.results()[i].opaque()).first = sourceOf(body.findYielded(i));
        frames.pop_back();
        continue;
      }
      frames.back().next = op.nextInBlock();
      if (Block callee = bodyOf(op)) {
        for (intptr_t i = 0; i < callee.arguments().size(); ++i)
          *by.insert(callee.arguments()[i].opaque()).first =
              i < op.operands().size() ? sourceOf(op.operands()[i]) : kNoOp;
        frames.push_back({callee.firstOp(), op, callee});
        continue;
      }
      std::vector<Index> &used = uses_.emplace_back();
      for (const ir::OpList::Item &user : ir::OpList(op))
        for (Value value : user.op.operands())
          if (Index index = sourceOf(value); index != kNoOp)
            used.push_back(index);
      for (Value result : op.results())
        *by.insert(result.opaque()).first = Index(ops_.size());
      ops_.push_back(op);
    }
    return true;
  }

  /// Reports what depends on each other once each group is one. Members of a scheduling group may.
  void findCycle(std::string_view key, std::string_view name) {
    bool isScheduling = key == kSchedulingGroup;
    std::vector<Index> nodes; // by operation: itself, or the first member of its group
    ir::PointerMap<Index> firsts;
    for (Index op = 0; op < ops_.size(); ++op) {
      Attribute group = groupOf(ops_[op], key);
      auto [first, isNew] = firsts.insert(group.opaque());
      if (isNew || !group)
        *first = op;
      nodes.push_back(*first);
    }
    Edges to(ops_.size()), from(ops_.size());
    for (Index op = 0; op < ops_.size(); ++op)
      for (Index used : uses_[op])
        if (!isScheduling || nodes[op] != nodes[used]) {
          to[nodes[op]].push_back(nodes[used]);
          from[nodes[used]].push_back(nodes[op]);
        }
    std::vector<bool> isLeft(ops_.size(), true);
    peel(to, from, isLeft);
    peel(from, to, isLeft);
    std::vector<Index> cycle;
    for (Index op = 0; op < ops_.size(); ++op)
      if (isLeft[nodes[op]])
        cycle.push_back(op);
    if (!cycle.empty())
      report(cycle, key, name);
  }

  /// Reports a cycle at the operation that keeps the first one's group apart. The first depends on
  /// none of the others, so it has a group.
  void report(const std::vector<Index> &cycle, std::string_view key, std::string_view name) {
    std::set<std::string> groups;
    Operation at;
    for (Index index : cycle) {
      Attribute group = groupOf(ops_[index], key);
      bool isApart =
          group ? key == kCollectiveGroup || !groups.count(group.str()) : key == kSchedulingGroup;
      if (!at && isApart && index != cycle[0])
        at = ops_[index];
      if (group)
        groups.insert(group.str());
    }
    conflicts.push_back(
        {at, ir::concat({quote(at), " and the ", name, groups.size() > 1 ? " groups " : " group ",
                         listSome(groups), " depend on each other, from ",
                         quoteAt(ops_[cycle.front()]), " to ", quoteAt(ops_[cycle.back()]),
                         (". XLA runs a group as a whole, with calls inlined, and GPU's compiler "
                          "refuses this: tag "
                          "what is between the members too, or give later members and other calls "
                          "of one function another value")})});
  }

  /// Reports groups of which only some members ask for an order.
  void checkOrder() {
    auto isOrdered = [](Operation op) { return textOf(op, kGroupOrder) == "true"; };
    ir::PointerMap<Operation> firsts; // by group; null once reported
    for (Operation op : ops_) {
      Attribute group = groupOf(op, kSchedulingGroup);
      if (!group)
        continue;
      auto [first, isNew] = firsts.insert(group.opaque());
      if (isNew)
        *first = op;
      if (!*first || isOrdered(op) == isOrdered(*first))
        continue;
      conflicts.push_back(
          {op, ir::concat({quote(op), " and ", quoteAt(*first), " are in the scheduling group ",
                           group.str(), ", and only one of them has '", kGroupOrder,
                           ("'. XLA's scheduler aborts the process unless all members have it or "
                            "none: tag the group as a whole")})});
      *first = Operation();
    }
  }

  const ir::OpIds &ids_;
  const CallGraph &graph_;
  std::vector<Operation> members_;
  size_t numInlined_ = 0;
  std::vector<Operation> ops_;
  /// The operations that compute the operands of each, and of those nested in it. All precede it.
  Edges uses_;
};

} // namespace

std::optional<std::vector<GroupConflict>>
findGroupConflicts(const ir::OpList &operations, const ir::OpIds &ids, const CallGraph &calls) {
  Checker checker(operations, ids, calls);
  return checker.run() ? std::optional(std::move(checker.conflicts)) : std::nullopt;
}

} // namespace hlotag::analysis
