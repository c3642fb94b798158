// SPDX-License-Identifier: Apache-2.0
#include "snapshot.h"

namespace hlotag::pass {

namespace {

std::vector<ir::Block> detachBlocks(ir::Region region) {
  std::vector<ir::Block> blocks;
  for (ir::Block block : region.blocks())
    blocks.push_back(block);
  for (ir::Block block : blocks)
    capi::fn().mlirBlockDetach(block.raw());
  return blocks;
}

void appendBlocks(ir::Region region, const std::vector<ir::Block> &blocks) {
  for (ir::Block block : blocks)
    capi::fn().mlirRegionAppendOwnedBlock(region.raw(), block.raw());
}

std::vector<ir::NamedAttribute> attributesOf(ir::Operation op) {
  std::vector<ir::NamedAttribute> attributes;
  for (ir::NamedAttribute entry : op.attributes())
    attributes.push_back(entry);
  return attributes;
}

void replaceAttributes(ir::Operation op, const std::vector<ir::NamedAttribute> &attributes) {
  const capi::Table &fn = capi::fn();
  for (ir::NamedAttribute entry : attributesOf(op))
    fn.mlirOperationRemoveAttributeByName(op.raw(), ir::toRef(entry.name.str()));
  for (ir::NamedAttribute entry : attributes)
    fn.mlirOperationSetAttributeByName(op.raw(), ir::toRef(entry.name.str()), entry.value.raw());
}

/// Exchanges the bodies, attributes and locations of two modules.
void exchange(ir::Operation a, ir::Operation b) {
  std::vector<ir::Block> ofA = detachBlocks(a.regions()[0]), ofB = detachBlocks(b.regions()[0]);
  appendBlocks(a.regions()[0], ofB);
  appendBlocks(b.regions()[0], ofA);
  std::vector<ir::NamedAttribute> attributes = attributesOf(a);
  replaceAttributes(a, attributesOf(b));
  replaceAttributes(b, attributes);
  ir::Location location = a.location();
  capi::fn().mlirOperationSetLocation(a.raw(), b.location().raw());
  capi::fn().mlirOperationSetLocation(b.raw(), location.raw());
}

} // namespace

Snapshot::Snapshot(ir::Operation module, ir::Operation spare) : module_(module), spare_(spare) {
  ir::OwnedOperation copy = ir::OwnedOperation::clone(module);
  exchange(module, spare);
  exchange(module, copy.get());
}

void Snapshot::restore() { exchange(module_, spare_); }

} // namespace hlotag::pass
