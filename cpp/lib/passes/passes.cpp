// SPDX-License-Identifier: Apache-2.0
#include "hlotag/passes/passes.h"

#include "hlotag/ir/support.h"

#include <stdexcept>

namespace hlotag::passes {

std::vector<std::unique_ptr<pass::Pass>> makeAllPasses() {
  std::vector<std::unique_ptr<pass::Pass>> passes;
  passes.push_back(createAttachPass());
  passes.push_back(createPropagatePass());
  passes.push_back(createPropagateAutodiffPass());
  passes.push_back(createResolvePass());
  passes.push_back(createStripPass());
  passes.push_back(createFinalizePass());
  return passes;
}

std::unique_ptr<pass::Pass> makePass(std::string_view argument, const OptionValues &options) {
  for (std::unique_ptr<pass::Pass> &pass : makeAllPasses()) {
    if (pass->info().argument != argument)
      continue;
    for (const auto &[name, value] : options) {
      pass::OptionBase *option = pass->findOption(name);
      if (!option || !option->set(value))
        throw std::invalid_argument(
            ir::concat({argument, " has no option '", name, "' of this type"}));
    }
    return std::move(pass);
  }
  throw std::invalid_argument(ir::concat({"unknown pass '", argument, "'"}));
}

} // namespace hlotag::passes
