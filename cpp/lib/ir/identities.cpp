// SPDX-License-Identifier: Apache-2.0
#include "hlotag/ir/identities.h"

#include "hlotag/ir/walk.h"

namespace hlotag::ir {

Identities::Id Identities::intern(const Chain &chain) {
  if (chain.empty())
    return kNone;
  auto [known, isNew] = ids_.try_emplace(chain, Id(chains_.size()));
  if (isNew)
    chains_.push_back(chain);
  return known->second;
}

void Identities::set(Operation op, Id id) {
  if (id != kNone)
    *ofOperation_.insert(op.opaque()).first = id;
}

Identities::Id Identities::of(Operation op) const {
  const Id *id = ofOperation_.find(op.opaque());
  return id ? *id : kNone;
}

void Identities::copy(Operation original, Operation copy) {
  if (empty())
    return;
  std::vector<Id> ids;
  walk(original, [&](Operation op) {
    ids.push_back(of(op));
    return WalkResult::Advance;
  });
  size_t next = 0;
  walk(copy, [&](Operation op) {
    set(op, ids[next++]);
    return WalkResult::Advance;
  });
}

} // namespace hlotag::ir
