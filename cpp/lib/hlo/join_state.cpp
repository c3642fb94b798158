// SPDX-License-Identifier: Apache-2.0
#include "join_state.h"

namespace hlotag::hlo {

namespace {

/// Returns, by computation, the instructions whose body it is.
std::vector<std::vector<size_t>> findCallers(const Module &module) {
  std::vector<std::vector<size_t>> callers(module.computations.size());
  for (size_t i = 0; i < module.instructions.size(); ++i)
    if (!module.kind(i).is(kRunsOthers))
      for (size_t callee : module.instructions[i].called)
        callers[callee].push_back(i);
  return callers;
}

} // namespace

Join::Join(const Module &module, const Program &program, const std::vector<NumberedName> &names,
           std::vector<size_t> heaviest)
    : facts(module, program, names), uses(facts), heaviest(std::move(heaviest)),
      callers(findCallers(module)) {}

} // namespace hlotag::hlo
