// SPDX-License-Identifier: Apache-2.0
#include "hlotag/pass/run.h"

#include <stdexcept>

namespace hlotag::pass {

namespace {

constexpr std::string_view kModule = "builtin.module";

/// Runs `pass`. Returns whether it succeeded.
bool runGuarded(Pass &pass, PassContext &context) {
  size_t errorsBefore = context.numErrors();
  ir::Location location = context.module().location();
  try {
    pass.run(context);
  } catch (const ir::IRError &error) {
    context.emitError(error.location.ptr ? error.location : location, error.what());
  } catch (const std::exception &error) {
    context.emitError(location,
                      ir::concat({pass.info().argument, " failed unexpectedly: ", error.what()}));
  }
  return context.numErrors() == errorsBefore;
}

/// Runs the passes. Returns the name of the pass that failed, or nothing.
std::string_view runAll(const Pipeline &pipeline, const RunOptions &options, PassContext &context) {
  for (const std::unique_ptr<Pass> &pass : pipeline) {
    context.tags().recordOrigins(options.debugOrigins ? pass->info().argument : "");
    if (!runGuarded(*pass, context))
      return pass->info().argument;
  }
  bool isValid = !options.verify || context.rewriter().verify(context.module());
  return isValid ? std::string_view() : pipeline.back()->info().argument;
}

} // namespace

RunResult run(ir::Operation module, const Pipeline &pipeline, const RunOptions &options) {
  if (module.name().str() != kModule)
    throw std::invalid_argument(ir::concat(
        {"a pipeline runs on a '", kModule, "' operation, not on '", module.name().str(), "'"}));
  ir::SourceName source(options.source);
  ir::DiagnosticScope diagnostics(module.context());
  PassContext context(module, diagnostics, options.whyIllegal);
  RunResult result;
  result.failingPass = runAll(pipeline, options, context);
  result.ok = result.failingPass.empty();
  if (result.ok)
    result.numChanges = context.rewriter().numChanges();
  if (result.ok || options.keepFailed)
    context.rewriter().commit();
  else
    context.rewriter().rollback();
  result.diagnostics = diagnostics.take();
  return result;
}

} // namespace hlotag::pass
