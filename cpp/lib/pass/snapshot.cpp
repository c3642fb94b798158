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

} // namespace

void Snapshot::restore(bool othersHoldOn) {
  const capi::Table &fn = capi::fn();
  ir::Operation copy = copy_.get();
  // Swap the bodies, so that destroying the copy destroys the changed blocks with their uses.
  for (intptr_t i = 0; i < module_.regions().size(); ++i) {
    std::vector<ir::Block> changed = detachBlocks(module_.regions()[i]);
    std::vector<ir::Block> former = detachBlocks(copy.regions()[i]);
    appendBlocks(module_.regions()[i], former);
    appendBlocks(copy.regions()[i], changed);
  }
  std::vector<ir::Identifier> added;
  for (ir::NamedAttribute entry : module_.attributes())
    if (!copy.attr(entry.name.str()))
      added.push_back(entry.name);
  for (ir::Identifier name : added)
    fn.mlirOperationRemoveAttributeByName(module_.raw(), ir::toRef(name.str()));
  for (ir::NamedAttribute entry : copy.attributes())
    fn.mlirOperationSetAttributeByName(module_.raw(), ir::toRef(entry.name.str()),
                                       entry.value.raw());
  fn.mlirOperationSetLocation(module_.raw(), copy.location().raw());
  if (othersHoldOn)
    (void)copy_.release();
  else
    copy_.reset();
}

} // namespace hlotag::pass
