// SPDX-License-Identifier: Apache-2.0
//
// Interned names of the operations and attributes that passes test for.
#pragma once

#include "hlotag/ir/attributes.h"

namespace hlotag::ir {

/// One per run. `op.name() == ids.func` is a pointer comparison.
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

  /// Operations that never carry tags: modules, functions, meshes, terminators.
  bool isNeverTagged(Identifier name) const {
    return name == stablehloReturn || name == funcReturn || name == func || name == module ||
           name == sdyReturn || name == sdyMesh;
  }
  /// The attribute of operations of that name with the function or functions they call, or null.
  Identifier calleesOf(Identifier name) const {
    return name == funcCall     ? callee
           : name == composite  ? decomposition
           : name == customCall ? calledComputations
                                : Identifier();
  }
};

} // namespace hlotag::ir
