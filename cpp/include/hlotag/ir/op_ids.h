// SPDX-License-Identifier: Apache-2.0
//
// Which operations and attributes do passes know by name? Interned once per run, from ops.def.
#pragma once

#include "hlotag/ir/attributes.h"
#include "hlotag/ir/flat_map.h"
#include "hlotag/ir/op_list.h"

#include <string_view>

namespace hlotag::ir {

/// What the name of an operation says about it.
enum OpFact : unsigned {
  kUntaggable = 1,    ///< has no entries: a module, a function, a mesh, a terminator
  kRunsEquations = 2, ///< runs other equations of JAX: a call, a loop, a conditional
  kInlined = 4,       ///< XLA replaces it by its callee
  kRefers = 8,        ///< attributes other than its callees may refer to functions
  kUnequal = 16,      ///< two with equal operands may have different results
  kCollective = 32,   ///< XLA groups it by `collective_group_key`
  kMovesSlices = 64,  ///< stacks residuals of a loop or takes them from a stack
  kProduct = 128,     ///< only its own derivative has such operations
  kOneStep = 256,     ///< its derivative is one operation for each operand
};

/// `op.name() == ids.func` is a pointer comparison.
class OpIds {
public:
  explicit OpIds(MlirContext context);

#define HLOTAG_OP(id, name, facts, callees) Identifier id;
#include "hlotag/ir/ops.def"

  // Attributes
  Identifier symName, frontendAttributes, tags, derived;

  /// Returns whether `fact` is known of operations called `name`.
  bool is(Identifier name, OpFact fact) const { return (rowOf(name).facts & fact) != 0; }
  /// Returns the attribute in which operations called `name` keep their callees, or null.
  Identifier calleesOf(Identifier name) const { return rowOf(name).callees; }

  /// Whether `op`, which is called `name`, may have entries. False for modules, functions and
  /// terminators.
  bool isTaggable(Operation op, Identifier name) const {
    auto [known, isNew] = taggable_.insert(name.opaque());
    if (isNew)
      *known = !is(name, kUntaggable) && op.block().terminator() != op;
    return *known;
  }

  /// Whether XLA makes computations of their own of the regions of an operation: those of loops,
  /// branches, reductions, sorts.
  bool hasComputations(const OpList::Item &item) const;
  /// Whether the regions of an operation are a part of it, as the body of a reduction or a sort.
  /// The bodies of loops, branches and functions have operations of their own.
  bool hasBody(const OpList::Item &item) const;

  struct Row {
    unsigned facts = 0;
    Identifier callees = {};
  };
  /// Returns both. The reference is valid until the next call.
  const Row &rowOf(Identifier name) const;

private:
  MlirContext context_;
  mutable PointerMap<bool> taggable_; // by name
  mutable PointerMap<Row> rows_;      // by name: those of ops.def, and those that were asked for
};

} // namespace hlotag::ir
