// SPDX-License-Identifier: Apache-2.0
//
// How is a module restored when a pass without a journal fails?
#pragma once

#include "hlotag/ir/operation.h"

namespace hlotag::pass {

class Snapshot {
public:
  explicit Snapshot(ir::Operation module)
      : module_(module), copy_(ir::OwnedOperation::clone(module)) {}

  /// Restores the module's attributes and body. The module operation stays the same object. The
  /// changed body is destroyed; with `othersHoldOn`, it is leaked, because others may refer to it.
  void restore(bool othersHoldOn);

private:
  ir::Operation module_;
  ir::OwnedOperation copy_;
};

} // namespace hlotag::pass
