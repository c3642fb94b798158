// SPDX-License-Identifier: Apache-2.0
#include "pairing_graph.h"

#include <algorithm>

namespace hlotag::analysis {

using namespace ir;

PairingGraph::PairingGraph(const OpList &operations, Provenance &provenance)
    : provenance_(provenance), ids_(operations[0].op.context()) {
  MlirContext context = operations[0].op.context();
  barrier_ = Identifier::get(context, "stablehlo.optimization_barrier");
  manualComputation_ = Identifier::get(context, "sdy.manual_computation");
  dynamicSlice_ = Identifier::get(context, "stablehlo.dynamic_slice");
  broadcast_ = Identifier::get(context, "stablehlo.broadcast_in_dim");
  reshape_ = Identifier::get(context, "stablehlo.reshape");
  transpose_ = Identifier::get(context, "stablehlo.transpose");
  convert_ = Identifier::get(context, "stablehlo.convert");
  customCall_ = Identifier::get(context, "stablehlo.custom_call");
  nodes.reserve(operations.size());
  nodeByOp_.reserve(operations.size());
  for (size_t index = 0; index < operations.size(); ++index)
    if (operations[index].name == ids_.func)
      addFunction(operations, index);
  for (std::vector<NodeId> &scratch : scratch_)
    scratch.assign(nodes.size(), kNone);
  lastOfKey_.resize(keys_.size());
  for (const FunctionNodes &range : functions) {
    findFollowers(range);
    findExpanded(range);
    findShaped(range);
    findOwners(range);
  }
}

void PairingGraph::addFunction(const OpList &operations, size_t index) {
  FunctionNodes &range =
      functions.emplace_back(FunctionNodes{operations[index].op, NodeId(nodes.size()), 0});
  *functionByOp_.insert(range.function.opaque()).first = uint32_t(functions.size() - 1);
  struct Open {
    NodeId id;
    size_t end;
  };
  std::vector<Open> open; // what the operation is in a region of
  auto close = [&](size_t at) {
    for (; !open.empty() && open.back().end <= at; open.pop_back())
      nodes[open.back().id].last = NodeId(nodes.size() - 1);
  };
  size_t end = operations.after(index);
  for (size_t at = index + 1; at < end;) {
    close(at);
    operations.prefetch(at);
    const OpList::Entry &entry = operations[at];
    size_t after = operations.after(at);
    if (entry.name == ids_.constant)
      addConstant(entry.op);
    else if (!ids_.isNeverTagged(entry.name)) {
      NodeId id = addNode(entry, open.empty() ? kNone : open.back().id);
      if (isControlFlow(entry.name)) {
        open.push_back({id, after});
        after = at + 1;
      }
    }
    at = after;
  }
  close(end);
  range.end = NodeId(nodes.size());
  findCaptured(range);
}

/// Equal constants are one value, so that recomputed operations have equal operands.
void PairingGraph::addConstant(Operation op) {
  Value result = op.results()[0];
  auto [first, isNew] = constants_.insert(op.attr("value").opaque());
  if (isNew)
    *first = result;
  else
    setAlias(result, *first);
}

NodeId PairingGraph::addNode(const OpList::Entry &entry, NodeId parent) {
  NodeId id = NodeId(nodes.size());
  Node &node = nodes.emplace_back();
  node.op = entry.op;
  node.name = entry.name;
  node.hasRegions = entry.hasRegions;
  node.parent = parent;
  node.owner = node.last = id;
  node.origin =
      &provenance_.of(node.op, parent == kNone ? functions.back().function : nodes[parent].op);
  node.order = orderOf(node.origin->transforms);
  node.primitive = node.origin->primitive;
  uint64_t key = uint64_t(node.origin->localScope) << 32 | node.origin->sourceKey;
  auto number = KeyId(keys_.size());
  auto [known, isNew] = keys_.insert(key);
  node.key = *known = isNew ? number : *known;
  auto operands = node.op.operands();
  auto results = node.op.results();
  node.takes.reserve(arena, size_t(operands.size()));
  for (Value operand : operands)
    node.takes.push_back(arena, operand.type().ptr);
  node.makes.reserve(arena, size_t(results.size()));
  for (Value result : results)
    node.makes.push_back(arena, result.type().ptr);
  *nodeByOp_.insert(node.op.opaque()).first = id;
  addAliases(node);
  return id;
}

bool PairingGraph::isControlFlow(Identifier name) const {
  return name == ids_.whileOp || name == ids_.caseOp || name == ids_.ifOp ||
         name == manualComputation_;
}

/// What is the same value as another.
void PairingGraph::addAliases(const Node &node) {
  Operation op = node.op;
  if (node.name == barrier_)
    for (Value result : op.results())
      aliasToOperand(result, op);
  if (node.name == ids_.whileOp)
    aliasInvariants(op);
  else if (node.name == ids_.funcCall || node.name == dynamicSlice_)
    aliasUnstacked(node);
  else if (!node.takes.empty() && provenance_.text(node.primitive) == "squeeze" &&
           aliases_.find(op.operands()[0].opaque()))
    setAlias(op.results()[0], canonical(op.operands()[0]));
  if (node.name != manualComputation_)
    return;
  Block body = op.regions()[0].firstBlock();
  for (Value argument : body.arguments())
    aliasToOperand(argument, op);
  for (Value result : op.results())
    if (Value yielded = body.yielded(result.number()))
      setAlias(result, yielded);
}

/// What regions use from outside goes up from the innermost operation to all around it.
void PairingGraph::findCaptured(const FunctionNodes &range) {
  constexpr size_t kMaxCaptured = 64;
  auto capture = [&](NodeId region, Value value) {
    Operation maker = value.isResult() ? value.definingOp() : value.ownerBlock().parentOp();
    NodeId defined = nodeOf(maker);
    bool isInside =
        defined != kNone && (defined > region || (defined == region && !value.isResult()));
    bool isConstant = value.isResult() && defined == kNone;
    Values &captured = *captured_.insert(region).first;
    if (isInside || isConstant || captured.size() >= kMaxCaptured)
      return;
    if (std::find(captured.begin(), captured.end(), value) != captured.end())
      return;
    captured.push_back(arena, value);
    nodes[region].takes.push_back(arena, value.type().ptr);
  };
  for (NodeId id = range.end; id-- > range.begin;) {
    if (nodes[id].last > id)
      for (Region region : nodes[id].op.regions())
        if (Operation end = region.firstBlock().terminator())
          for (Value yielded : end.operands())
            capture(id, yielded);
    if (NodeId parent = nodes[id].parent; parent != kNone)
      forEachInput(id, [&](Value value) { capture(parent, value); });
  }
}

/// `value` is a copy of the operand of `op` that has its number.
void PairingGraph::aliasToOperand(Value value, Operation op) {
  if (value.number() < op.operands().size())
    setAlias(value, canonical(op.operands()[value.number()]));
}

/// What a loop hands on unchanged is what it was given.
void PairingGraph::aliasInvariants(Operation loop) {
  if (loop.regions().size() < 2)
    return;
  for (Region region : loop.regions())
    for (Value argument : region.firstBlock().arguments()) {
      intptr_t number = argument.number();
      Block body = loop.regions()[1].firstBlock();
      if (body.yielded(number) == body.arguments()[number])
        aliasToOperand(argument, loop);
    }
}

/// The forward loop of a scan stacks residuals, `stack[i] = x`; in the backward loop, `stack[i]`
/// is that `x`.
void PairingGraph::aliasUnstacked(const Node &node) {
  Operation op = node.op;
  if (op.operands().size() < 2 || op.results().size() != 1)
    return;
  Value stack = canonical(op.operands()[0]);
  Operation loop = stack.definingOp();
  if (!loop || loop.name() != ids_.whileOp) {
    // What a scan slices is the same in the forward and in the backward loop.
    if (hostOf(node) == kNone)
      return;
    Value slice = op.results()[0];
    auto [first, isNew] = slices_.try_emplace({stack.opaque(), slice.type().ptr}, slice);
    if (!isNew)
      setAlias(slice, first->second);
    return;
  }
  Block body = loop.regions().size() > 1 ? loop.regions()[1].firstBlock() : Block();
  Value last = body.yielded(stack.number());
  Operation update = last ? last.definingOp() : Operation();
  if (!update || update.operands().size() < 3)
    return;
  Value carried = body.arguments()[stack.number()];
  if (update.operands()[0] == carried)
    setAlias(op.results()[0], canonical(update.operands()[1]));
}

const Traits &PairingGraph::traits(const Node &node) {
  if (traits_.size() <= node.primitive)
    traits_.resize(node.primitive + 1);
  std::optional<Traits> &traits = traits_[node.primitive];
  if (!traits)
    traits.emplace(provenance_.text(node.primitive));
  return *traits;
}

NodeId PairingGraph::nodeOf(Operation op) {
  NodeId *found = op ? nodeByOp_.find(op.opaque()) : nullptr;
  return found ? *found : kNone;
}

NodeId PairingGraph::definition(Value value) { return nodeOf(canonical(value).definingOp()); }

Value PairingGraph::canonical(Value value) {
  // Aliases of arguments are learnt after those of what they are handed on as.
  for (MlirValue *alias = aliases_.find(value.opaque()); alias;
       alias = aliases_.find(value.opaque()))
    value = Value(*alias);
  return value;
}

Value PairingGraph::root(Value value) {
  value = canonical(value);
  for (int step = 0; step < 4; ++step) {
    Operation maker = value.definingOp();
    if (!maker || !isShapingName(maker.name()) || maker.operands().empty())
      break;
    value = canonical(maker.operands()[0]);
  }
  return value;
}

bool PairingGraph::isZero(const Node &node) {
  if (node.name != broadcast_)
    return false;
  Operation maker = canonical(node.op.operands()[0]).definingOp();
  if (!maker || maker.name() != ids_.constant)
    return false;
  Attribute value = maker.attr("value");
  auto [known, isNew] = isZero_.insert(value.opaque());
  if (isNew) {
    std::string text = value.str();
    size_t digits = text.find('<');
    *known = digits != std::string::npos &&
             (text.compare(digits, 3, "<0>") == 0 || text.compare(digits, 10, "<0.000000e") == 0 ||
              text.compare(digits, 6, "<false") == 0);
  }
  return *known;
}

std::vector<const void *> PairingGraph::attributesOf(const Node &node) const {
  std::vector<const void *> attributes;
  if (node.name == ids_.funcCall)
    return attributes;
  for (NamedAttribute attribute : node.op.attributes())
    if (attribute.name.str().find('.') == std::string_view::npos) {
      attributes.push_back(attribute.name.opaque());
      attributes.push_back(attribute.value.opaque());
    }
  return attributes;
}

NodeId PairingGraph::hostOf(const Node &node) {
  NodeId parent = node.parent;
  if (parent == kNone || !node.origin->expanded ||
      nodes[parent].origin->trace != node.origin->trace)
    return kNone;
  return parent;
}

size_t PairingGraph::regionOf(Operation op) {
  size_t number = 0;
  for (Region region : op.parent().regions()) {
    if (region.firstBlock() == op.block())
      break;
    ++number;
  }
  return number;
}

Value PairingGraph::inBranchOf(Operation op, Value value) {
  Operation maker = value.definingOp();
  if (!maker || (maker.name() != ids_.caseOp && maker.name() != ids_.ifOp))
    return value;
  for (Operation child = op, parent = op.parent(); parent && parent.name() != ids_.func;
       child = parent, parent = parent.parent()) {
    if (parent.name() != maker.name() || parent.regions().size() != maker.regions().size() ||
        nodes[nodeOf(parent)].key != nodes[nodeOf(maker)].key)
      continue;
    Block branch = maker.regions()[intptr_t(regionOf(child))].firstBlock();
    Value yielded = branch.yielded(value.number());
    return yielded ? root(yielded) : value;
  }
  return value;
}

const Order *PairingGraph::orderOf(TextId transforms) {
  auto [found, isNew] = orders_.try_emplace(transforms);
  Order &order = found->second;
  if (!isNew)
    return &order;
  std::string letters;
  for (char transform : provenance_.text(transforms)) {
    if (transform == 't' || transform == 'j')
      letters += transform;
    order.numBatched += transform == 'v';
  }
  order.letters = provenance_.intern(letters);
  size_t first = letters.find('t');
  if (first == std::string::npos)
    return &order;
  order.isDerived = true;
  isHigherOrder |= letters.find_last_of('t') > 0;
  order.level = provenance_.intern(letters.substr(0, first + 1));
  order.base = provenance_.intern(letters.substr(0, first) + letters.substr(first + 1));
  order.isReversed = true;
  std::string all(provenance_.text(transforms));
  order.inner = provenance_.intern(all.substr(all.find('t') + 1));
  return &order;
}

void PairingGraph::setAlias(Value copy, Value original) {
  if (!(canonical(original) == canonical(copy)))
    *aliases_.insert(copy.opaque()).first = canonical(original).raw();
}

const FunctionNodes *PairingGraph::functionOf(const Node &call) {
  if (call.name != ids_.funcCall)
    return nullptr;
  FlatSymbolRefAttr callee = call.op.attrOf<FlatSymbolRefAttr>("callee");
  Operation function = callee ? provenance_.function(callee.value()) : Operation();
  uint32_t *index = function ? functionByOp_.find(function.opaque()) : nullptr;
  return index ? &functions[*index] : nullptr;
}

NodeRange PairingGraph::membersOf(NodeId equation) {
  if (members_.empty()) { // grouped by owner, in order
    membersBegin_.assign(nodes.size() + 2, 0);
    for (const Node &node : nodes)
      ++membersBegin_[node.owner + 2];
    for (size_t at = 2; at < membersBegin_.size(); ++at)
      membersBegin_[at] += membersBegin_[at - 1];
    members_.resize(nodes.size());
    for (NodeId id = 0; id < nodes.size(); ++id)
      members_[membersBegin_[nodes[id].owner + 1]++] = id;
  }
  return {members_.data() + membersBegin_[equation], members_.data() + membersBegin_[equation + 1]};
}

/// Whether `op` is what `primitive` lowers to and not a helper: JAX and StableHLO name things
/// alike.
static bool isMainOp(Identifier op, std::string_view primitive) {
  std::string_view name = op.str();
  name.remove_prefix(std::min(name.size(), name.find('.') + 1));
  return primitive.size() < 3 || name.substr(0, 3) == primitive.substr(0, 3) || name == "call";
}

/// One equation may lower to several operations, the last of which makes its result: implicit
/// broadcasts come before it, at the same location.
void PairingGraph::findFollowers(const FunctionNodes &range) {
  for (NodeId id = range.begin; id + 1 < range.end; ++id) {
    Node &node = nodes[id];
    if (nodes[id + 1].origin != node.origin || node.makes.size() != 1 ||
        isMainOp(node.name, provenance_.text(node.origin->primitive)))
      continue;
    for (OpOperand use : node.op.results()[0].uses()) {
      NodeId user = nodeOf(use.owner());
      // A kernel that works on what another makes is another equation of the same primitive.
      bool isAnother = user != kNone && node.name == customCall_ && nodes[user].name == customCall_;
      if (user != kNone && user > id && nodes[user].origin == node.origin && !isAnother) {
        node.follows = user;
        break;
      }
    }
  }
  for (NodeId id = range.end; id-- > range.begin;)
    if (NodeId next = nodes[id].follows; next != kNone && nodes[next].follows != kNone)
      nodes[id].follows = nodes[next].follows;
  for (NodeId id = range.begin; id < range.end; ++id) {
    if (nodes[id].follows == kNone || nodes[id].op.operands().size() != 1)
      continue;
    nodes[nodes[id].follows].takes.push_back(arena, nodes[id].takes[0]);
    Value value = canonical(nodes[id].op.operands()[0]);
    Operation maker = value.definingOp();
    if (maker && maker.name() == broadcast_)
      maker = canonical(maker.operands()[0]).definingOp();
    if (maker && maker.name() == ids_.constant)
      nodes[nodes[id].follows].constant = maker.attr("value").opaque();
  }
}

/// Equations like `logistic` are written out as others, which have one location but for the name.
void PairingGraph::findExpanded(const FunctionNodes &range) {
  for (NodeId begin = range.begin; begin < range.end;) {
    const Node &first = nodes[begin];
    NodeId end = begin + 1;
    if (!first.origin->expanded || first.hasRegions || functionOf(first)) {
      begin = end;
      continue;
    }
    while (end < range.end && nodes[end].origin->expanded && nodes[end].key == first.key &&
           nodes[end].origin->trace == first.origin->trace && nodes[end].order == first.order &&
           nodes[end].parent == first.parent && !nodes[end].hasRegions && !functionOf(nodes[end]) &&
           nodes[end].origin->primitive != first.origin->primitive)
      ++end;
    std::string names;
    for (NodeId id = begin; id < end; ++id)
      if (nodes[id].follows == kNone)
        names.append(names.empty() ? "" : " ").append(provenance_.text(nodes[id].primitive));
    NodeId main = end - 1;
    if (names == "neg exp add div")
      nodes[main].primitive = provenance_.intern("logistic");
    else
      main = begin; // unknown: left alone
    for (NodeId id = begin; id < end && main != begin; ++id)
      nodes[id].owner = main;
    begin = end;
  }
}

/// Batching brings an operand into shape with the location of what made it, if that was a change of
/// shape too.
void PairingGraph::findShaped(const FunctionNodes &range) {
  for (NodeId id = range.begin; id < range.end; ++id) {
    Node &node = nodes[id];
    if (node.owner != id || node.follows != kNone || !isShaping(node) || node.name == convert_)
      continue;
    NodeId maker = nodeOf(node.op.operands()[0].definingOp());
    if (maker == kNone || nodes[maker].origin != node.origin || node.name != nodes[maker].name)
      continue;
    NodeId user = kNone;
    size_t count = 0;
    for (OpOperand use : node.op.results()[0].uses()) {
      user = nodeOf(use.owner());
      ++count;
    }
    if (count != 1 || user == kNone || nodes[user].key != node.key)
      continue;
    node.owner = nodes[user].follows == kNone ? user : nodes[user].follows;
    node.isShape = true;
    nodes[node.owner].takes.push_back(arena, node.takes[0]);
  }
}

} // namespace hlotag::analysis
