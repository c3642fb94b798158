// SPDX-License-Identifier: Apache-2.0
//
// Which operation of an equation is its result, as far as names tell.
#pragma once

#include "hlotag/ir/ir.h"

#include <string_view>

namespace hlotag::analysis {

/// Whether a primitive of JAX, the last element of a location's name, lowers to an operation of
/// that kind, e.g. `mul` to `stablehlo.multiply`.
bool isLoweredTo(std::string_view primitive, std::string_view opName);

/// The last element of a name such as `jit(f)/jvp(a/b)/mul`.
std::string_view primitiveOf(std::string_view name);

/// Knows, per location, the kind of operation that tagged equations there have as their result.
class LoweringGroups {
public:
  explicit LoweringGroups(MlirContext context) : call_(ir::Identifier::get(context, "func.call")) {}

  /// A tagged operation stands at `location`.
  void addSeed(ir::Operation op, ir::Location location) {
    ir::Identifier &result = *results_.insert(location.opaque()).first;
    if (!result && isResultOfItsPrimitive(op, location))
      result = op.name();
  }

  /// Whether an operation of that kind at `location` is the result of an equation, not a helper.
  bool isResult(ir::Identifier opName, ir::Location location) {
    if (opName == call_)
      return true;
    ir::Identifier *result = results_.find(location.opaque());
    return result && *result == opName;
  }

private:
  bool isResultOfItsPrimitive(ir::Operation op, ir::Location location);

  ir::Identifier call_;
  ir::PointerMap<ir::Identifier> results_;
};

} // namespace hlotag::analysis
