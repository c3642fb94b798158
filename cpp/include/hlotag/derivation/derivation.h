// SPDX-License-Identifier: Apache-2.0
//
// Which operations autodiff derived from which equation, found from the module alone.
#pragma once

#include "hlotag/analysis/provenance.h"

#include <functional>
#include <vector>

namespace hlotag::derivation {

/// The operations of one equation of the program: what it lowered to, and its residuals.
using Operations = std::vector<ir::Operation>;

/// `derived` stems from the only one of `primals`, or from one of them.
struct Derivation {
  ir::Operation derived;
  std::vector<const Operations *> primals;
  bool isProved() const { return primals.size() == 1; }
};

/// Calls `visit` for the operations that autodiff emitted or computes again; it may change
/// attributes. Operations whose equation is unknown, or may be dead code, are left out.
///
/// The transposition is replayed: values are numbered, so that copies of a value are one, and an
/// operation of the backward pass stems from the equation of its place one of whose transpose's
/// operations (see table.h) takes and makes the same. About linear in the operations.
void findDerived(const ir::OpList &operations, analysis::Provenance &provenance,
                 const std::function<void(const Derivation &)> &visit);

} // namespace hlotag::derivation
