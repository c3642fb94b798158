// SPDX-License-Identifier: Apache-2.0
//
// Which operations did autodiff derive from which equation? Found from the module alone.
#pragma once

#include "hlotag/analysis/provenance.h"

#include <functional>
#include <vector>

namespace hlotag::derivation {

/// The operations of one equation of the program: what it lowered to, and its residuals.
using Operations = std::vector<ir::Operation>;

/// `derived` stems from one of `primals`.
struct Derivation {
  ir::Operation derived;
  std::vector<const Operations *> primals;
};

/// Calls `visit` for each operation that autodiff emitted or computes again. `visit` may change
/// attributes. Leaves out operations whose equation is unknown or may be dead code.
///
/// Replays the transposition. Value numbering identifies the copies of a value. An operation of the
/// backward pass stems from the equation at its place whose transpose (table.h) emits an operation
/// with the same operands and results. About linear in the operations.
void findDerived(const ir::OpList &operations, analysis::Provenance &provenance,
                 const std::function<void(const Derivation &)> &visit);

} // namespace hlotag::derivation
