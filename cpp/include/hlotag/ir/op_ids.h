// SPDX-License-Identifier: Apache-2.0
//
// Which operations and attributes do passes know by name? Interned once per run.
#pragma once

#include "hlotag/ir/attributes.h"

namespace hlotag::ir {

/// `op.name() == ids.func` is a pointer comparison.
struct OpIds {
  explicit OpIds(MlirContext context);

  // Operations
  Identifier module, func, funcReturn, funcCall;
  Identifier stablehloReturn, sdyReturn, sdyMesh;
  Identifier constant;              // stablehlo.constant
  Identifier whileOp, caseOp, ifOp; // stablehlo.while, .case, .if
  Identifier composite, customCall;

  // Attributes
  Identifier symName, callee, decomposition, calledComputations;
  Identifier frontendAttributes, attached, tags;

  /// Returns true for operations that cannot have tags: modules, functions, meshes, terminators.
  bool isNeverTagged(Identifier name) const {
    return name == stablehloReturn || name == funcReturn || name == func || name == module ||
           name == sdyReturn || name == sdyMesh;
  }
  /// Returns the attribute in which operations called `name` keep their callees, or null.
  Identifier calleesOf(Identifier name) const {
    return name == funcCall     ? callee
           : name == composite  ? decomposition
           : name == customCall ? calledComputations
                                : Identifier();
  }
};

} // namespace hlotag::ir
