// SPDX-License-Identifier: Apache-2.0
//
// Copies of functions, for callers that need another body.
#pragma once

#include "hlotag/analysis/call_graph.h"
#include "hlotag/pass/pass.h"
#include "symbol_names.h"

namespace hlotag::transforms {

/// Copies functions of one module. Reads its symbols once, so nobody else may add any meanwhile.
class FunctionCopies {
public:
  explicit FunctionCopies(pass::PassContext &ctx);

  /// A private copy of `function` behind `after`, named `f_0`, `f_1`, ...
  ir::Operation copy(ir::Operation function, ir::Operation after);
  ir::FlatSymbolRefAttr symbolOf(ir::Operation function) const;

private:
  pass::PassContext &ctx_;
  ir::Identifier visibility_;
  SymbolNames names_;
};

/// Points a call to another function. `op` is the call of `site`, or its copy in a copy of the
/// caller.
void retarget(pass::PassContext &ctx, const analysis::CallGraph::CallSite &site, ir::Operation op,
              ir::FlatSymbolRefAttr function);

} // namespace hlotag::transforms
