// SPDX-License-Identifier: Apache-2.0
//
// Which values are copies of others.
#include "pairing_graph.h"

#include <cstdlib>
#include <string>

namespace hlotag::analysis {

using namespace ir;

/// The number of `2 : i64`, or the first one of `array<i64: 2, 0>`.
static size_t firstNumber(Attribute attribute) {
  std::string text = attribute ? attribute.str() : std::string();
  size_t at = text.substr(0, 5) == "array" ? text.find(": ") + 2 : 0;
  return std::strtoull(text.c_str() + at, nullptr, 10);
}

/// Whether all numbers of a list, if there is one, are 1.
static bool areOnes(Attribute numbers) {
  std::string text = numbers ? numbers.str() : std::string();
  size_t begin = text.find(": ");
  return begin == std::string::npos || text.find_first_not_of("1, >", begin + 1) == text.npos;
}

/// What is the same value as another.
void PairingGraph::addAliases(NodeId id) {
  const Node &node = nodes[id];
  if (node.name == barrier_)
    for (ValueId result : results(id))
      aliasToOperand(result, id);
  if (node.name == ids_.whileOp)
    aliasInvariants(id);
  else if (node.name == ids_.funcCall || node.name == dynamicSlice_)
    aliasUnstacked(id);
  else if (node.name == slice_ || node.name == reshape_)
    aliasUnrolled(id);
  if (!node.takes.empty() && provenance_.text(node.primitive) == "squeeze" &&
      values_.isCopy(operands(id)[0]) && !values_.isCopy(node.firstResult))
    values_.setAlias(node.firstResult, operands(id)[0]);
  else if (node.name == manualComputation_)
    for (ValueId argument : values_.arguments(regionOf(id, 0)))
      aliasToOperand(argument, id);
}

/// `value` is a copy of the operand of the node that has its number.
void PairingGraph::aliasToOperand(ValueId value, NodeId id) {
  if (values_.number(value) < operands(id).size())
    values_.setAlias(value, operands(id)[values_.number(value)]);
}

/// A manual computation gives what its body does.
void PairingGraph::aliasYielded(NodeId host) {
  if (nodes[host].name == manualComputation_)
    for (const Yield &yield : values_.yields(regionOf(host, 0)))
      if (yield.number < results(host).size())
        values_.setAlias(results(host)[yield.number], yield.value);
}

/// What a loop hands on unchanged is what it was given.
void PairingGraph::aliasInvariants(NodeId loop) {
  constexpr size_t kBody = 1;
  if (regionOf(loop, kBody) == kNone)
    return;
  Block body = values_.region(regionOf(loop, kBody)).block; // not looked at yet
  for (size_t number = 0; regionOf(loop, number) != kNone; ++number)
    for (ValueId argument : values_.arguments(regionOf(loop, number))) {
      intptr_t place = values_.number(argument);
      if (body.yielded(place) == body.arguments()[place])
        aliasToOperand(argument, loop);
    }
}

/// The forward loop of a scan stacks residuals, `stack[i] = x`; in the backward loop, `stack[i]`
/// is that `x`.
void PairingGraph::aliasUnstacked(NodeId id) {
  if (operands(id).size() < 2 || results(id).size() != 1)
    return;
  ValueId slice = nodes[id].firstResult;
  ValueId stack = values_.canonical(operands(id)[0]);
  NodeId loop = values_.maker(stack);
  if (loop == kNone || nodes[loop].name != ids_.whileOp) {
    // What a scan slices is the same in the forward and in the backward loop.
    if (hostOf(nodes[id]) == kNone)
      return;
    auto [first, isNew] =
        slices_.try_emplace({stack, values_.typeOf(slice), nullptr, nullptr, 0}, slice);
    if (!isNew)
      values_.setAlias(slice, first->second);
    return;
  }
  RegionId body = regionOf(loop, 1);
  ValueId last = body == kNone ? kNone : values_.yielded(body, values_.number(stack));
  NodeId update = last == kNone ? kNone : values_.maker(last);
  if (update == kNone || operands(update).size() < 3)
    return;
  ValueId carried = values_.arguments(body)[values_.number(stack)];
  if (operands(update)[0] == carried)
    values_.setAlias(slice, operands(update)[1]);
}

/// What a backward operation takes out of forward values may be what was put there, or what the
/// forward code takes out too, if they are of one equation. A scan that is unrolled handles its
/// stacks that way, several steps at a time: `reshape(stack)[i][2:3]` is what was concatenated
/// third, in another shape.
void PairingGraph::aliasUnrolled(NodeId id) {
  const Node &node = nodes[id];
  if (operands(id).empty())
    return;
  ValueId result = node.firstResult, value = values_.canonical(operands(id)[0]);
  TypeId type = values_.typeOf(result);
  NodeId maker = values_.maker(value);
  if (node.isTransposed && maker != kNone && nodes[maker].isTransposed)
    return;
  bool isSlice = node.name == slice_;
  Attribute begin = isSlice ? opOf(node).attr("start_indices") : Attribute();
  Attribute strides = isSlice ? opOf(node).attr("strides") : Attribute();
  std::tuple key{value, type, isSlice ? begin.opaque() : node.name.opaque(), strides.opaque(),
                 node.key};
  if (!node.isTransposed) {
    slices_.emplace(key, result);
    return;
  }
  if (auto found = slices_.find(key); found != slices_.end())
    values_.setAlias(result, found->second);
  else if (maker != kNone && nodes[maker].key == node.key && areOnes(strides))
    if (ValueId part = partOf(maker, begin, type); part != kNone)
      values_.setAlias(result, part);
}

/// The operand of the node `id` that is sliced from its result where `begin` says, or, if that is
/// null, that its result is reshaped to; or kNone.
ValueId PairingGraph::partOf(NodeId id, Attribute begin, TypeId type) {
  const Node &node = nodes[id];
  if (begin && (node.name != concatenate_ || firstNumber(opOf(node).attr("dimension")) != 0))
    return kNone;
  if (!begin && node.name != reshape_ && node.name != broadcast_)
    return kNone;
  size_t at = 0, first = begin ? firstNumber(begin) : 0;
  for (ValueId part : operands(id)) {
    if (at == first && values_.typeOf(part) == type)
      return part;
    at += std::strtoull(shape(values_.typeOf(part)).parts[0].c_str(), nullptr, 10);
  }
  return kNone;
}

void PairingGraph::addKeysOutside(const Node &node, std::vector<KeyId> &keys) {
  constexpr std::string_view kBody = "while/body";
  std::string_view scope = provenance_.text(node.origin->localScope);
  for (size_t at = scope.find(kBody); at != std::string_view::npos; at = scope.find(kBody, at)) {
    bool isElement = at == 0 || scope[at - 1] == '/';
    at += kBody.size();
    if (!isElement || (at < scope.size() && scope[at] != '/'))
      continue;
    std::string_view inner = scope.substr(std::min(at + 1, scope.size()));
    uint64_t key = uint64_t(provenance_.intern(inner)) << 32 | node.origin->sourceKey;
    if (const KeyId *known = keys_.find(key))
      keys.push_back(*known);
  }
}

NodeId PairingGraph::makerAround(ValueId value) {
  while (values_.isArgument(value) && values_.isCopy(value)) {
    const ValueGraph::Region &region = values_.region(values_.regionOf(value));
    NodeId giver = region.host;
    if (giver == kNone) // of a function: all calls give the same
      giver = nodeOfCall(provenance_.callsOf(region.block.parentOp()).front());
    if (giver == kNone || nodes[giver].order->isDerived ||
        values_.number(value) >= operands(giver).size())
      break;
    value = operands(giver)[values_.number(value)];
  }
  return values_.maker(value);
}

} // namespace hlotag::analysis
