// SPDX-License-Identifier: Apache-2.0
#include "hlotag/ir/op_ids.h"
#include "hlotag/ir/keys.h"

namespace hlotag::ir {

namespace {

bool isHlo(std::string_view name) {
  return startsWith(name, "stablehlo.") || startsWith(name, "mhlo.") || startsWith(name, "chlo.");
}

} // namespace

OpIds::OpIds(MlirContext context) : context_(context) {
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

bool OpIds::hasComputations(const OpList::Item &item) const {
  return item.hasRegions && isHlo(item.name.str());
}

bool OpIds::hasBody(const OpList::Item &item) const {
  return hasComputations(item) && !is(item.name, kRunsEquations);
}

const OpIds::Row &OpIds::rowOf(Identifier name) const {
  if (const Row *known = rows_.find(name.opaque()))
    return *known;
  Row row{kRefers, {}};
  if (startsWith(name.str(), "mhlo.")) { // Most operations are those of StableHLO.
    Identifier twin = Identifier::get(context_, concat({"stablehlo.", name.str().substr(5)}));
    if (const Row *known = rows_.find(twin.opaque()))
      row = *known;
  } else if (isHlo(name.str())) {
    row = {}; // Has no symbols.
  }
  return *rows_.insert(name.opaque()).first = row;
}

} // namespace hlotag::ir
