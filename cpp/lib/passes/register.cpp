// SPDX-License-Identifier: Apache-2.0
#include "hlotag/pass/registry.h"
#include "hlotag/passes/passes.h"

namespace hlotag::passes {

void registerAllPasses() {
  pass::registerPass(createAttachPass);
  pass::registerPass(createCompleteLoweringPass);
  pass::registerPass(createPropagateAutodiffPass);
  pass::registerPass(createPropagateCallsPass);
  pass::registerPass(createPropagateRegionsPass);
  pass::registerPass(createResolvePass);
  pass::registerPass(createStripPass);
  pass::registerPass(createVerifyPass);
}

} // namespace hlotag::passes
