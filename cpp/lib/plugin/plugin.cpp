// SPDX-License-Identifier: Apache-2.0
//
// Compiled into each plugin: the plugin's side of abi.h.
#include "hlotag/plugin/plugin.h"

#include "texts.h"

#include <string>
#include <utility>

namespace hlotag::plugin {

namespace {

void report(const ir::Diagnostic &diagnostic, bool isNote, HlotagReporter reporter, void *sink) {
  HlotagReport raw{};
  raw.isNote = isNote;
  raw.severity = static_cast<int32_t>(diagnostic.severity);
  raw.file = diagnostic.file.c_str();
  raw.line = diagnostic.line;
  raw.column = diagnostic.column;
  raw.location = diagnostic.location.c_str();
  raw.message = diagnostic.message.c_str();
  reporter(sink, &raw);
  for (const ir::Diagnostic &note : diagnostic.notes)
    report(note, /*isNote=*/true, reporter, sink);
}

bool setOptions(pass::Pass &pass, const HlotagTexts *values) {
  for (pass::OptionBase *option : std::as_const(pass).options())
    if (!option->setTexts(copyTexts(*values++)))
      return false;
  return true;
}

pass::LogicalResult runGuarded(pass::Pass &pass, pass::PassContext &ctx) {
  try {
    return pass.run(ctx);
  } catch (const ir::IRError &error) {
    return ctx.emitError(ir::Location(error.location), error.what());
  } catch (const std::exception &error) {
    return ctx.emitError(ctx.module(), std::string("failed unexpectedly: ") + error.what());
  }
}

int32_t run(void *data, void *module, const HlotagTexts *values, HlotagReporter reporter,
            void *sink) noexcept {
  try {
    std::unique_ptr<pass::Pass> pass = (*static_cast<const Factory *>(data))();
    ir::Operation operation(MlirOperation{module});
    ir::DiagnosticScope diagnostics(operation.context());
    pass::PassContext ctx(operation, diagnostics);
    bool ok = setOptions(*pass, values) && succeeded(runGuarded(*pass, ctx)) && !ctx.numErrors();
    for (const ir::Diagnostic &diagnostic : diagnostics.diagnostics())
      report(diagnostic, /*isNote=*/false, reporter, sink);
    if (!ok)
      return 1; // The context rolls its changes back.
    ctx.rewriter().commit();
    return 0;
  } catch (...) {
    return 1;
  }
}

void describe(const HlotagHost &host, const Factory &factory) {
  std::unique_ptr<pass::Pass> pass = factory();
  // Reserved, because C strings point into it: 3 texts for each option and for the pass.
  std::vector<std::string> texts;
  texts.reserve(3 * std::as_const(*pass).options().size() + 3);
  std::vector<Texts> initials;
  auto keep = [&](std::string_view text) { return texts.emplace_back(text).c_str(); };
  std::vector<HlotagOption> options;
  for (const pass::OptionBase *option : std::as_const(*pass).options()) {
    initials.emplace_back(option->initial());
    options.push_back({keep(option->name()), keep(option->type()), initials.back().raw(),
                       keep(option->description())});
  }
  const pass::PassInfo &info = pass->info();
  HlotagPass raw{};
  raw.argument = keep(info.argument);
  raw.summary = keep(info.summary);
  raw.description = keep(info.description);
  raw.numOptions = options.size();
  raw.options = options.data();
  raw.run = run;
  raw.data = static_cast<void *>(const_cast<Factory *>(&factory));
  host.addPass(host.state, &raw);
}

} // namespace

void registerPasses(const HlotagHost &host, const std::vector<Factory> &factories) {
  try {
    if (host.abi != HLOTAG_PLUGIN_ABI)
      return host.fail(host.state, "it was built for another version of hlotag's plugin interface");
    std::vector<std::string> missing = capi::install([&](std::string_view name) {
      return host.function(std::string(name).c_str(), std::string(capi::typeOf(name)).c_str());
    });
    if (!missing.empty())
      return host.fail(host.state, ("this hlotag lacks " + missing[0]).c_str());
    for (const Factory &factory : factories)
      describe(host, factory);
  } catch (const std::exception &error) {
    host.fail(host.state, error.what());
  }
}

} // namespace hlotag::plugin
