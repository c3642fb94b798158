// SPDX-License-Identifier: Apache-2.0
//
// How is a module restored when a pass without a journal fails?
#pragma once

#include "hlotag/ir/operation.h"

namespace hlotag::pass {

/// Moves the body and the attributes of a module into `spare`, and gives the module a copy of them.
/// No operation is destroyed, because Python may refer to any: `spare` owns the body that the
/// module does not have.
class Snapshot {
public:
  Snapshot(ir::Operation module, ir::Operation spare);

  /// Gives the module its own body and attributes back.
  void restore();

private:
  ir::Operation module_, spare_;
};

} // namespace hlotag::pass
