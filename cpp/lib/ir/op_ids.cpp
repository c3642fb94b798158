// SPDX-License-Identifier: Apache-2.0
#include "hlotag/ir/op_ids.h"
#include "hlotag/ir/keys.h"

namespace hlotag::ir {

namespace {

bool isHlo(std::string_view name) {
  return startsWith(name, "stablehlo.") || startsWith(name, "mhlo.") || startsWith(name, "chlo.");
}

} // namespace

OpIds::OpIds(MlirContext context) {
  auto get = [&](std::string_view text) { return Identifier::get(context, text); };
#define HLOTAG_OP(id, name, facts, callees)                                                        \
  id = get(name);                                                                                  \
  *rows_.insert(id.opaque()).first = {facts, *callees ? get(callees) : Identifier()};
#include "hlotag/ir/ops.def"
  symName = get("sym_name");
  frontendAttributes = get(kFrontendAttributes);
  tags = get("hlotag.tags");
  derived = get(kDerived);
}

bool OpIds::hasBody(const OpList::Item &item) const {
  return item.hasRegions && isHlo(item.name.str()) && !is(item.name, kRunsEquations);
}

const OpIds::Row &OpIds::rowOf(Identifier name) const {
  auto [row, isNew] = rows_.insert(name.opaque());
  // Other operations of StableHLO have no symbols.
  if (isNew)
    row->facts = isHlo(name.str()) ? 0U : unsigned{kRefers};
  return *row;
}

} // namespace hlotag::ir
