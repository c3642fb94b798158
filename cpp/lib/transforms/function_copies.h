// SPDX-License-Identifier: Apache-2.0
//
// How does a caller get a copy of a function with another body?
#pragma once

#include "hlotag/analysis/call_graph.h"
#include "hlotag/pass/pass.h"
#include "symbol_names.h"

namespace hlotag::transforms {

/// Copies functions of one module. Reads the symbols once: nothing else may add symbols meanwhile.
class FunctionCopies {
public:
  explicit FunctionCopies(pass::PassContext &ctx);

  /// Inserts a private copy of `function` after `after`, named `f_0`, `f_1`, ...
  ir::Operation copy(ir::Operation function, ir::Operation after);
  ir::FlatSymbolRefAttr symbolOf(ir::Operation function) const;

private:
  pass::PassContext &ctx_;
  ir::Identifier visibility_;
  SymbolNames names_;
};

/// Changes the callee of a call. `op` is the call of `site`, or its copy in a copy of the caller.
void retarget(pass::PassContext &ctx, const analysis::CallGraph::CallSite &site, ir::Operation op,
              ir::FlatSymbolRefAttr function);

} // namespace hlotag::transforms
