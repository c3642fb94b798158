// SPDX-License-Identifier: Apache-2.0
#include "primitives.h"

#include "hlotag/ir/tag_writer.h"

#include <algorithm>
#include <iterator>

namespace hlotag::analysis {

namespace {

struct Lowering {
  std::string_view primitive, kind;
};

// The pairs whose names do not share a prefix.
constexpr Lowering kLowerings[] = {
    {"cond", "case"},
    {"conv_general_dilated", "convolution"},
    {"eq", "compare"},
    {"eq_to", "compare"},
    {"expand_dims", "reshape"},
    {"expm1", "exponential_minus_one"},
    {"ge", "compare"},
    {"gt", "compare"},
    {"le", "compare"},
    {"le_to", "compare"},
    {"log1p", "log_plus_one"},
    {"lt", "compare"},
    {"lt_to", "compare"},
    {"ne", "compare"},
    {"population_count", "popcnt"},
    {"ppermute", "collective_permute"},
    {"psum", "all_reduce"},
    {"rev", "reverse"},
    {"scan", "while"},
    {"squeeze", "reshape"},
};

} // namespace

bool isLoweredTo(std::string_view primitive, std::string_view opName) {
  std::string_view kind = opName.substr(opName.find('.') + 1);
  if (primitive.empty() || kind.empty())
    return false;
  if (ir::startsWith(kind, primitive) || ir::startsWith(primitive, kind))
    return true;
  return std::any_of(std::begin(kLowerings), std::end(kLowerings), [&](const Lowering &lowering) {
    return lowering.primitive == primitive && lowering.kind == kind;
  });
}

std::string_view primitiveOf(std::string_view name) {
  size_t depth = 0;
  for (size_t i = name.size(); i-- > 0;) {
    if (name[i] == ')')
      ++depth;
    else if (name[i] == '(')
      depth -= depth > 0;
    else if (name[i] == '/' && depth == 0)
      return name.substr(i + 1);
  }
  return name;
}

bool isResultOfItsPrimitive(ir::Operation op) {
  ir::Location location = op.location();
  ir::NameLoc name = ir::dynCast<ir::NameLoc>(location);
  if (!name)
    return false;
  std::string_view primitive = primitiveOf(name.name().str());
  if (!isLoweredTo(primitive, op.name().str()))
    return false;
  if (primitive != "select_n" || op.operands().empty())
    return true;
  // JAX lowers an integer predicate to a tree of selects, each with a comparison.
  ir::Operation predicate = op.operands()[0].definingOp();
  return !predicate || predicate.location() != location ||
         !isLoweredTo("lt", predicate.name().str());
}

} // namespace hlotag::analysis
