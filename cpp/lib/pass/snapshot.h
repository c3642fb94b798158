// SPDX-License-Identifier: Apache-2.0
//
// A copy of a module, to go back to when passes that keep no journal fail.
#pragma once

#include "hlotag/ir/operation.h"

namespace hlotag::pass {

class Snapshot {
public:
  explicit Snapshot(ir::Operation module)
      : module_(module), copy_(ir::OwnedOperation::clone(module)) {}

  /// Makes the module what it was. The operation itself stays; all that was nested in it is
  /// replaced, and destroyed unless others may still hold on to it: then it is never freed.
  void restore(bool othersHoldOn);

private:
  ir::Operation module_;
  ir::OwnedOperation copy_;
};

} // namespace hlotag::pass
