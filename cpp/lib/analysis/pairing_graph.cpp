// SPDX-License-Identifier: Apache-2.0
#include "pairing_graph.h"

#include <algorithm>

namespace hlotag::analysis {

using namespace ir;

PairingGraph::PairingGraph(const OpList &operations, Provenance &provenance)
    : operations_(operations), provenance_(provenance), ids_(operations[0].op.context()) {
  MlirContext context = operations[0].op.context();
  barrier_ = Identifier::get(context, "stablehlo.optimization_barrier");
  manualComputation_ = Identifier::get(context, "sdy.manual_computation");
  dynamicSlice_ = Identifier::get(context, "stablehlo.dynamic_slice");
  broadcast_ = Identifier::get(context, "stablehlo.broadcast_in_dim");
  reshape_ = Identifier::get(context, "stablehlo.reshape");
  transpose_ = Identifier::get(context, "stablehlo.transpose");
  convert_ = Identifier::get(context, "stablehlo.convert");
  slice_ = Identifier::get(context, "stablehlo.slice");
  concatenate_ = Identifier::get(context, "stablehlo.concatenate");
  customCall_ = Identifier::get(context, "stablehlo.custom_call");
  nodes.reserve(operations.size());
  values_.reserve(operations.size());
  for (size_t index = 0; index < operations.size(); ++index)
    if (bool isDeclaration = !operations[index].numNested;
        operations[index].name == ids_.func && !isDeclaration)
      addFunction(operations, index);
  values_.seal();
  for (std::vector<NodeId> &scratch : scratch_)
    scratch.assign(nodes.size(), kNone);
  lastOfKey_.assign(keys_.size(), kNone);
  for (FunctionNodes &range : functions) {
    findFollowers(range);
    findExpanded(range);
    findShaped(range);
    findOwners(range);
    findMembers(range);
  }
}

void PairingGraph::addFunction(const OpList &operations, size_t index) {
  FunctionNodes &range = functions.emplace_back();
  range.function = operations[index].op;
  range.begin = NodeId(nodes.size());
  range.body = values_.addRegion(range.function.regions()[0].firstBlock(), kNone, 0);
  *functionByOp_.insert(range.function.opaque()).first = uint32_t(functions.size() - 1);
  struct Open {
    NodeId host;
    size_t end;
    RegionId region;
  };
  std::vector<Open> open{{kNone, operations.after(index), range.body}}; // what the operation is in
  std::vector<NodeId> loops; // and conditionals that are in no other
  auto close = [&](size_t at) {
    for (; open.back().end <= at && open.size() > 1; open.pop_back()) {
      nodes[open.back().host].last = NodeId(nodes.size() - 1);
      aliasYielded(open.back().host);
    }
  };
  for (size_t at = index + 1; at < open.front().end;) {
    close(at);
    const OpList::Entry &entry = operations[at];
    size_t after = operations.after(at);
    auto &[host, end, region] = open.back();
    if (entry.name == ids_.constant) {
      values_.addConstant(entry.op);
    } else if (isTerminator(entry.name)) {
      values_.addYields(region, entry.op);
      if (after < end && host != kNone &&
          regionOf(host, values_.region(region).number + 1) != kNone)
        ++region;
    } else if (!ids_.isNeverTagged(entry.name)) {
      NodeId id = addNode(at, region);
      if (isControlFlow(entry.name)) {
        if (host == kNone)
          loops.push_back(id);
        open.push_back({id, after, regionOf(id, 0)});
        after = at + 1;
      }
    }
    at = after;
  }
  close(open.front().end);
  range.end = NodeId(nodes.size());
  findCaptured(loops);
}

NodeId PairingGraph::addNode(size_t entry, RegionId region) {
  NodeId id = NodeId(nodes.size());
  Node &node = nodes.emplace_back();
  Operation op = operations_[entry].op;
  node.name = operations_[entry].name;
  node.hasRegions = operations_[entry].hasRegions;
  node.entry = uint32_t(entry);
  node.region = region;
  node.owner = node.last = id;
  NodeId parent = parentOf(node);
  node.origin =
      &provenance_.of(op, parent == kNone ? functions.back().function : opOf(nodes[parent]));
  node.trace = node.origin->trace;
  node.isTransposed = node.origin->transposed;
  node.isCheckpointed = node.origin->checkpointed;
  node.isRematted = node.origin->rematted;
  hasCheckpoint |= node.isCheckpointed || node.isRematted;
  node.order = orderOf(node.origin->transforms);
  node.primitive = node.origin->primitive;
  uint64_t key = uint64_t(node.origin->localScope) << 32 | node.origin->sourceKey;
  auto number = KeyId(keys_.size());
  auto [known, isNew] = keys_.insert(key);
  node.key = *known = isNew ? number : *known;
  values_.addOperands(op.operands());
  node.takes.reserve(arena, operands(id).size());
  for (ValueId operand : operands(id))
    node.takes.push_back(arena, values_.typeOf(operand));
  ValueRange made = values_.addResults(op.results(), id);
  node.firstResult = made[0];
  node.numResults = uint32_t(made.size());
  node.makesIntegers = areIntegers(makes(node));
  if (node.name == ids_.funcCall)
    *calls_.insert(op.opaque()).first = id;
  if (isControlFlow(node.name))
    addRegions(id);
  addAliases(id);
  list(id);
  return id;
}

void PairingGraph::list(NodeId id) {
  FunctionNodes &range = functions.back();
  const Node &node = nodes[id];
  if (node.isTransposed || node.isRematted)
    range.derived.push_back(id);
  if (node.name == ids_.funcCall)
    range.calls.push_back(id);
  if (node.origin->expanded)
    range.expanded.push_back(id);
  if (id > range.begin && nodes[id - 1].origin == node.origin)
    range.continued.push_back(id - 1);
  if (isShaping(node) && node.name != convert_) {
    NodeId maker = values_.maker(operands(id)[0]);
    if (maker != kNone && nodes[maker].origin == node.origin && nodes[maker].name == node.name)
      range.reshaped.push_back(id);
  }
}

void PairingGraph::addRegions(NodeId host) {
  uint32_t number = 0;
  for (Region region : opOf(nodes[host]).regions()) {
    RegionId id = values_.addRegion(region.firstBlock(), host, number);
    if (number++ == 0)
      *regions_.insert(host).first = id;
  }
}

RegionId PairingGraph::regionOf(NodeId host, size_t number) const {
  const RegionId *first = regions_.find(host);
  RegionId region = first ? *first + RegionId(number) : kNone;
  return first && region < values_.numRegions() && values_.region(region).host == host ? region
                                                                                       : kNone;
}

bool PairingGraph::isControlFlow(Identifier name) const {
  return name == ids_.whileOp || name == ids_.caseOp || name == ids_.ifOp ||
         name == manualComputation_;
}

/// What regions use from outside goes up from the innermost operation to all around it.
void PairingGraph::findCaptured(const std::vector<NodeId> &loops) {
  constexpr size_t kMaxCaptured = 64;
  auto capture = [&](NodeId host, ValueId value) {
    bool isArgument = values_.isArgument(value);
    NodeId defined =
        isArgument ? values_.region(values_.regionOf(value)).host : values_.maker(value);
    bool isInside = defined != kNone && (defined > host || (defined == host && isArgument));
    ValueIds &captured = *captured_.insert(host).first;
    if (isInside || values_.isConstant(value) || captured.size() >= kMaxCaptured)
      return;
    if (std::find(captured.begin(), captured.end(), value) != captured.end())
      return;
    captured.push_back(arena, value);
    nodes[host].takes.push_back(arena, values_.typeOf(value));
  };
  for (size_t at = loops.size(); at-- > 0;)
    for (NodeId id = nodes[loops[at]].last + 1; id-- > loops[at];) {
      if (nodes[id].last > id)
        for (size_t number = 0; regionOf(id, number) != kNone; ++number)
          for (const Yield &yield : values_.yields(regionOf(id, number)))
            capture(id, yield.value);
      if (NodeId parent = parentOf(nodes[id]); parent != kNone)
        forEachInput(id, [&](ValueId value) { capture(parent, value); });
    }
}

const Traits &PairingGraph::traits(const Node &node) {
  if (traits_.size() <= node.primitive)
    traits_.resize(node.primitive + 1);
  std::optional<Traits> &traits = traits_[node.primitive];
  if (!traits)
    traits.emplace(provenance_.text(node.primitive));
  return *traits;
}

NodeId PairingGraph::nodeOfCall(Operation call) {
  NodeId *found = calls_.find(call.opaque());
  return found ? *found : kNone;
}

ValueId PairingGraph::root(ValueId value) const {
  value = values_.canonical(value);
  for (int step = 0; step < 4; ++step) {
    NodeId maker = values_.maker(value);
    if (maker == kNone || !isShapingName(nodes[maker].name) || operands(maker).empty())
      break;
    value = values_.canonical(operands(maker)[0]);
  }
  return value;
}

bool PairingGraph::isZero(NodeId id) {
  if (nodes[id].name != broadcast_)
    return false;
  ValueId operand = values_.canonical(operands(id)[0]);
  Attribute value = values_.constant(operand);
  // The text of others may be as long as the program's data.
  if (bool isScalar = shape(values_.typeOf(operand)).parts.size() == 1; !value || !isScalar)
    return false;
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
  for (NamedAttribute attribute : opOf(node).attributes())
    if (attribute.name.str().find('.') == std::string_view::npos) {
      attributes.push_back(attribute.name.opaque());
      attributes.push_back(attribute.value.opaque());
    }
  return attributes;
}

NodeId PairingGraph::hostOf(const Node &node) {
  NodeId parent = parentOf(node);
  if (parent == kNone || !node.origin->expanded || nodes[parent].trace != node.trace)
    return kNone;
  return parent;
}

ValueId PairingGraph::inBranchOf(const Node &node, ValueId value) const {
  NodeId maker = values_.maker(value);
  if (maker == kNone || (nodes[maker].name != ids_.caseOp && nodes[maker].name != ids_.ifOp))
    return value;
  RegionId region = node.region;
  for (NodeId parent = parentOf(node); parent != kNone;
       region = nodes[parent].region, parent = parentOf(nodes[parent])) {
    if (nodes[parent].name != nodes[maker].name || nodes[parent].key != nodes[maker].key ||
        opOf(nodes[parent]).regions().size() != opOf(nodes[maker]).regions().size())
      continue;
    RegionId branch = regionOf(maker, values_.region(region).number);
    ValueId yielded = values_.yielded(branch, values_.number(value));
    return yielded == kNone ? value : root(yielded);
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
  hasTwice |= letters == "jj";
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

const FunctionNodes *PairingGraph::functionOf(const Node &call) {
  if (call.name != ids_.funcCall)
    return nullptr;
  uint32_t *index = functionByOp_.find(provenance_.calleeOf(opOf(call)).opaque());
  return index ? &functions[*index] : nullptr;
}

const FunctionNodes &PairingGraph::functionAround(NodeId id) const {
  auto isBefore = [](NodeId node, const FunctionNodes &range) { return node < range.end; };
  return *std::upper_bound(functions.begin(), functions.end(), id, isBefore);
}

/// Links the operations of each equation that has several, last first, so that they are in order.
void PairingGraph::findMembers(const FunctionNodes &range) {
  for (NodeId id = range.end; id-- > range.begin;) {
    NodeId owner = nodes[id].owner;
    if (owner == id && nodes[id].firstMember == kNone)
      continue; // alone, or the last one
    if (owner > id && nodes[owner].firstMember == kNone && nodes[owner].owner == owner)
      nodes[owner].firstMember = owner;
    nodes[id].nextMember = nodes[owner].firstMember;
    nodes[owner].firstMember = id;
  }
}

/// Whether `op` is what `primitive` lowers to and not a helper: JAX and StableHLO name things
/// alike.
static bool isMainOp(Identifier op, std::string_view primitive) {
  std::string_view name = op.str();
  name.remove_prefix(std::min(name.size(), name.find('.') + 1));
  if (primitive == "unstack") // of slices
    return name == "reshape";
  return primitive.size() < 3 || name.substr(0, 3) == primitive.substr(0, 3) || name == "call";
}

/// One equation may lower to several operations, the last of which makes its result: implicit
/// broadcasts come before it, at the same location.
void PairingGraph::findFollowers(FunctionNodes &range) {
  for (NodeId id : range.continued) {
    Node &node = nodes[id];
    if (node.numResults != 1 || isMainOp(node.name, provenance_.text(node.origin->primitive)))
      continue;
    for (const Use &use : values_.uses(node.firstResult)) {
      NodeId user = use.user;
      // A kernel that works on what another makes is another equation of the same primitive.
      bool isAnother = user != kNone && node.name == customCall_ && nodes[user].name == customCall_;
      if (user != kNone && user > id && nodes[user].origin == node.origin && !isAnother) {
        node.follows = user;
        range.followers.push_back(id);
        break;
      }
    }
  }
  for (auto id = range.followers.rbegin(); id != range.followers.rend(); ++id)
    if (NodeId next = nodes[*id].follows; nodes[next].follows != kNone)
      nodes[*id].follows = nodes[next].follows;
  for (NodeId id : range.followers) {
    if (operands(id).size() != 1)
      continue;
    nodes[nodes[id].follows].takes.push_back(arena, nodes[id].takes[0]);
    ValueId value = values_.canonical(operands(id)[0]);
    NodeId maker = values_.maker(value);
    if (maker != kNone && nodes[maker].name == broadcast_)
      value = values_.canonical(operands(maker)[0]);
    if (values_.constant(value))
      nodes[nodes[id].follows].constant = value;
  }
}

/// Equations like `logistic` are written out as others, which have one location but for the name.
void PairingGraph::findExpanded(const FunctionNodes &range) {
  NodeId end = range.begin;
  for (NodeId begin : range.expanded) {
    const Node &first = nodes[begin];
    if (begin < end || first.hasRegions || functionOf(first))
      continue;
    end = begin + 1;
    while (end < range.end && nodes[end].origin->expanded && nodes[end].key == first.key &&
           nodes[end].trace == first.trace && nodes[end].order == first.order &&
           parentOf(nodes[end]) == parentOf(first) && !nodes[end].hasRegions &&
           !functionOf(nodes[end]) && nodes[end].origin->primitive != first.origin->primitive)
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
  }
}

/// Batching brings an operand into shape with the location of what made it, if that was a change of
/// shape too.
void PairingGraph::findShaped(const FunctionNodes &range) {
  for (NodeId id : range.reshaped) {
    Node &node = nodes[id];
    if (node.owner != id || node.follows != kNone)
      continue;
    Span<Use> uses = values_.uses(node.firstResult);
    NodeId user = uses.size() == 1 ? uses[0].user : kNone;
    if (user == kNone || nodes[user].key != node.key)
      continue;
    node.owner = nodes[user].follows == kNone ? user : nodes[user].follows;
    node.isShape = true;
    nodes[node.owner].takes.push_back(arena, node.takes[0]);
  }
}

} // namespace hlotag::analysis
