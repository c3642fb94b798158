// SPDX-License-Identifier: Apache-2.0
#include "pairing_values.h"

namespace hlotag::analysis {

void ValueGraph::reserve(size_t numOperations) {
  values_.reserve(numOperations);
  types_.reserve(numOperations);
  operands_.reserve(numOperations * 2);
  operandsBegin_.reserve(numOperations + 1);
  ids_.reserve(numOperations);
}

ValueId ValueGraph::add(ir::Value value, uint32_t from, uint32_t number, bool isArgument) {
  ValueId id = ValueId(values_.size());
  values_.push_back({id, from, isArgument, number});
  const void *type = value.type().ptr;
  auto [known, isNew] = typeIds_.insert(type);
  if (isNew) {
    *known = TypeId(distinctTypes_.size());
    distinctTypes_.push_back(type);
  }
  types_.push_back(*known);
  *ids_.insert(value.opaque()).first = id;
  return id;
}

ValueId ValueGraph::idOf(ir::Value value) {
  ValueId *known = ids_.find(value.opaque());
  return known ? *known : add(value, kNone, kUnknown);
}

void ValueGraph::addOperands(ir::Operation::Operands operands) {
  for (ir::Value operand : operands)
    operands_.push_back(idOf(operand));
  operandsBegin_.push_back(uint32_t(operands_.size()));
}

ValueRange ValueGraph::addResults(ir::Operation::Results results, NodeId maker) {
  ValueId first = ValueId(values_.size());
  for (intptr_t number = 0; number < results.size(); ++number)
    add(results[number], maker, uint32_t(number));
  return {first, size_t(results.size())};
}

RegionId ValueGraph::addRegion(ir::Block block, NodeId host, uint32_t number) {
  auto id = RegionId(regions_.size());
  auto yields = uint32_t(yields_.size());
  Region &region = regions_.emplace_back(
      Region{block, host, number, ValueId(values_.size()), 0, yields, yields});
  if (!block)
    return id;
  region.numArguments = uint32_t(block.arguments().size());
  for (uint32_t argument = 0; argument < region.numArguments; ++argument)
    add(block.arguments()[argument], id, argument, true);
  return id;
}

void ValueGraph::addYields(RegionId region, ir::Operation terminator) {
  regions_[region].yieldsBegin = uint32_t(yields_.size());
  uint32_t number = 0;
  for (ir::Value value : terminator.operands())
    yields_.push_back({idOf(value), region, number++});
  regions_[region].yieldsEnd = uint32_t(yields_.size());
}

void ValueGraph::addConstant(ir::Operation op) {
  ir::Attribute attribute = op.attr("value");
  auto [first, isNew] = firstConstants_.insert(attribute.opaque());
  ValueId value = add(op.results()[0], kNone, uint32_t(constants_.size()));
  constants_.push_back(attribute);
  if (isNew)
    *first = value;
  else
    setAlias(value, *first);
}

/// Last uses come first, as in MLIR.
void ValueGraph::seal() {
  ids_ = {};
  usesBegin_.assign(values_.size() + 2, 0);
  for (ValueId operand : operands_)
    ++usesBegin_[operand + 2];
  for (const Yield &yield : yields_)
    ++usesBegin_[yield.value + 2];
  for (size_t at = 2; at < usesBegin_.size(); ++at)
    usesBegin_[at] += usesBegin_[at - 1];
  uses_.resize(operands_.size() + yields_.size());
  for (auto at = uint32_t(yields_.size()); at-- > 0;)
    uses_[usesBegin_[yields_[at].value + 1]++] = {kNone, at};
  for (auto node = NodeId(operandsBegin_.size() - 1); node-- > 0;)
    for (uint32_t number = uint32_t(operands(node).size()); number-- > 0;)
      uses_[usesBegin_[operands(node)[number] + 1]++] = {node, number};
}

} // namespace hlotag::analysis
