// SPDX-License-Identifier: Apache-2.0
#include "primitives.h"

#include "hlotag/ir/op_ids.h"

namespace hlotag::analysis {

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
  if (!ir::isLoweredTo(primitive, op.name().str()))
    return false;
  if (primitive != "select_n" || op.operands().empty())
    return true;
  // JAX lowers an integer predicate to a tree of selects, each with a comparison.
  ir::Operation predicate = op.operands()[0].definingOp();
  return !predicate || predicate.location() != location ||
         !ir::isLoweredTo("lt", predicate.name().str());
}

} // namespace hlotag::analysis
