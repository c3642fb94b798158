// SPDX-License-Identifier: Apache-2.0
#include "hlotag/pass/pipeline.h"
#include "hlotag/pass/registry.h"

namespace hlotag::pass {

PipelineElement makeElement(std::string_view argument, const OptionValues &options) {
  PipelineElement element{lookup(argument), {}};
  if (!element.pass)
    throw PipelineError(ir::concat({"unknown pass '", argument, "'"}));
  for (const auto &[name, value] : options) {
    OptionBase *option = element.pass->findOption(name);
    if (!option || !option->set(value))
      throw PipelineError(ir::concat({argument, " has no option '", name, "' of this type"}));
  }
  return element;
}

} // namespace hlotag::pass
