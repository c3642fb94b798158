// SPDX-License-Identifier: Apache-2.0
#include "hlotag/ir/op_ids.h"
#include "hlotag/ir/keys.h"

#include <algorithm>
#include <iterator>

namespace hlotag::ir {

namespace {

bool isHlo(std::string_view name) {
  return startsWith(name, "stablehlo.") || startsWith(name, "chlo.");
}

/// Returns whether `word` is one of the words in `text`.
bool hasWord(std::string_view text, std::string_view word) {
  return (" " + std::string(text) + " ").find(" " + std::string(word) + " ") != std::string::npos;
}

} // namespace

OpIds::OpIds(MlirContext context) {
  auto get = [&](std::string_view text) { return Identifier::get(context, text); };
#define HLOTAG_OP(id, name, facts, callees, primitives)                                            \
  id = get(name);                                                                                  \
  *rows_.insert(id.opaque()).first = {facts, *callees ? get(callees) : Identifier()};
#include "hlotag/ir/ops.def"
  symName = get("sym_name");
  frontendAttributes = get(kFrontendAttributes);
  tags = get("hlotag.tags");
}

const OpIds::Row &OpIds::rowOf(Identifier name) const {
  auto [row, isNew] = rows_.insert(name.opaque());
  // Other operations of StableHLO have no symbols.
  if (isNew)
    row->facts = isHlo(name.str()) ? 0U : unsigned{kRefers};
  return *row;
}

bool isLoweredTo(std::string_view primitive, std::string_view opName) {
  static constexpr std::pair<std::string_view, std::string_view> lowerings[] = {
#define HLOTAG_OP(id, name, facts, callees, primitives) {name, primitives},
#include "hlotag/ir/ops.def"
  };
  auto kindOf = [](std::string_view name) { return name.substr(name.find('.') + 1); };
  std::string_view kind = kindOf(opName);
  if (primitive.empty() || kind.empty())
    return false;
  if (startsWith(kind, primitive) || startsWith(primitive, kind))
    return true;
  return std::any_of(std::begin(lowerings), std::end(lowerings), [&](const auto &row) {
    return !row.second.empty() && kindOf(row.first) == kind && hasWord(row.second, primitive);
  });
}

} // namespace hlotag::ir
