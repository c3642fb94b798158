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

  /// Returns true for modules, functions and meshes, which cannot have tags.
  bool isNeverTagged(Identifier name) const {
    return name == func || name == module || name == sdyMesh;
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
