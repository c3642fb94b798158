// SPDX-License-Identifier: Apache-2.0
//
// How does a caller get a copy of a function with another body?
#pragma once

#include "hlotag/analysis/call_graph.h"
#include "hlotag/pass/pass.h"

#include <string>
#include <unordered_map>
#include <unordered_set>

namespace hlotag::transforms {

/// Copies functions of one module. Reads the symbols once: nothing else may add symbols meanwhile.
class FunctionCopies {
public:
  explicit FunctionCopies(pass::PassContext &ctx);

  /// Inserts a private copy of `function` after `after`, with the first free name of `f_0`, `f_1`,
  /// ...
  ir::Operation copy(ir::Operation function, ir::Operation after);
  ir::FlatSymbolRefAttr symbolOf(ir::Operation function) const;

private:
  std::string makeName(const std::string &base);

  pass::PassContext &ctx_;
  ir::Identifier visibility_;
  std::unordered_set<std::string> names_;
  std::unordered_map<std::string, size_t> nextNumber_; // by base
};

/// Changes the callee of a call. `op` is the call of `site`, or its copy in a copy of the caller.
void retarget(pass::PassContext &ctx, const analysis::CallGraph::CallSite &site, ir::Operation op,
              ir::FlatSymbolRefAttr function);

} // namespace hlotag::transforms
