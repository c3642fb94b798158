// SPDX-License-Identifier: Apache-2.0
#include "hlotag/plugin/loader.h"

#include "hlotag/capi/table.h"
#include "hlotag/pass/guest.h"
#include "plugin/texts.h"

#include <dlfcn.h>
#include <exception>
#include <map>
#include <mutex>

namespace hlotag::plugin {

using namespace pass;

namespace {

/// Runs `body` in a callback of a plugin. Keeps an exception in `problem` until the plugin returns,
/// because exceptions must not cross the plugin's frames.
template <class Run> void guard(std::exception_ptr &problem, const Run &body) noexcept {
  try {
    body();
  } catch (...) {
    problem = std::current_exception();
  }
}

/// Collects what a plugin registers.
struct Registration {
  std::vector<GuestSpec> specs;
  std::string failure;
  std::exception_ptr problem;
};

/// Collects the reports of a plugin's pass.
struct Reports {
  std::vector<ir::Diagnostic> diagnostics;
  std::exception_ptr problem;
};

ir::Diagnostic convert(const HlotagReport &report) {
  ir::Diagnostic diagnostic;
  constexpr ir::Severity severities[]{ir::Severity::Error, ir::Severity::Warning,
                                      ir::Severity::Remark};
  if (report.isNote)
    diagnostic.severity = ir::Severity::Note;
  else if (report.severity >= 0 && report.severity < 3)
    diagnostic.severity = severities[report.severity];
  diagnostic.file = report.file;
  diagnostic.line = report.line;
  diagnostic.column = report.column;
  diagnostic.location = report.location;
  diagnostic.message = report.message;
  return diagnostic;
}

void collect(void *sink, const HlotagReport *report) noexcept {
  auto &reports = *static_cast<Reports *>(sink);
  guard(reports.problem, [&] {
    std::vector<ir::Diagnostic> &collected = reports.diagnostics;
    bool isNote = report->isNote && !collected.empty();
    (isNote ? collected.back().notes : collected).push_back(convert(*report));
  });
}

LogicalResult run(int32_t (*function)(void *, void *, const HlotagTexts *, HlotagReporter, void *),
                  void *data, PassContext &ctx, const GuestPass &self) {
  std::vector<Texts> texts;
  for (const OptionBase *option : self.options())
    texts.emplace_back(option->value());
  std::vector<HlotagTexts> values;
  values.reserve(texts.size());
  for (const Texts &of : texts)
    values.push_back(of.raw());
  Reports reports;
  bool ok = function(data, ctx.module().raw().ptr, values.data(), collect, &reports) == 0;
  if (reports.problem)
    std::rethrow_exception(reports.problem);
  for (ir::Diagnostic &report : reports.diagnostics)
    ctx.report(std::move(report));
  return {ok};
}

/// Returns the initial value of an option; of a wrong type if the texts are.
OptionValue valueOf(const HlotagOption &option) {
  if (!option.initial)
    throw std::invalid_argument("the initial value of an option is null");
  std::string_view type = option.type;
  OptionValue value{std::string()};
  if (type == "bool")
    value = false;
  else if (type == "int")
    value = int64_t{0};
  else if (type == "float")
    value = 0.0;
  else if (type == "list of strings")
    value = std::vector<std::string>();
  OptionList owner;
  OptionBase made(owner, "", "", value);
  return made.setTexts(copyTexts(option.initial)) ? made.value() : OptionValue();
}

GuestSpec specOf(const HlotagPass *pass) {
  GuestSpec spec;
  spec.argument = pass->argument;
  spec.summary = pass->summary;
  spec.description = pass->description;
  for (size_t i = 0; i < pass->numOptions; ++i) {
    const HlotagOption &option = pass->options[i];
    spec.options.push_back({option.name, option.type, valueOf(option), option.description});
  }
  spec.run = [function = pass->run, data = pass->data](PassContext &ctx, const GuestPass &self) {
    return run(function, data, ctx, self);
  };
  return spec;
}

void addPass(void *state, const HlotagPass *pass) noexcept {
  auto &registration = *static_cast<Registration *>(state);
  guard(registration.problem, [&] { registration.specs.push_back(specOf(pass)); });
}

void fail(void *state, const char *reason) noexcept {
  auto &registration = *static_cast<Registration *>(state);
  guard(registration.problem, [&] { registration.failure = reason; });
}

void *function(const char *name, const char *type) noexcept { return capi::find(name, type); }

const HlotagPlugin &pluginOf(void *library, const std::string &path) {
  using Entry = const HlotagPlugin *(*)();
  auto entry = reinterpret_cast<Entry>(dlsym(library, HLOTAG_PLUGIN_ENTRY));
  if (!entry)
    throw PluginError(path + " is not an hlotag plugin: it has no function " HLOTAG_PLUGIN_ENTRY);
  const HlotagPlugin *plugin = entry();
  if (!plugin)
    throw PluginError(path + ": " HLOTAG_PLUGIN_ENTRY "() returned null");
  // Only the first field is the same in every version.
  if (plugin->abi != HLOTAG_PLUGIN_ABI)
    throw PluginError(path + " was built for version " + std::to_string(plugin->abi) +
                      " of hlotag's plugin interface; this hlotag has version " +
                      std::to_string(HLOTAG_PLUGIN_ABI) + ": build it again");
  return *plugin;
}

std::vector<std::string> registerPasses(const HlotagPlugin &plugin, const std::string &path) {
  Registration registration;
  HlotagHost host{HLOTAG_PLUGIN_ABI, HLOTAG_VERSION, function, addPass, fail, &registration};
  plugin.registerPasses(&host);
  try {
    if (registration.problem)
      std::rethrow_exception(registration.problem);
  } catch (const std::exception &error) {
    registration.failure = error.what();
  }
  std::vector<std::string> names;
  names.reserve(registration.specs.size());
  for (const GuestSpec &spec : registration.specs)
    names.push_back(spec.argument);
  if (registration.failure.empty())
    registration.failure = registerGuests(std::move(registration.specs)).value_or("");
  if (!registration.failure.empty())
    throw PluginError(path + " (" + plugin.name + " " + plugin.version +
                      "): " + registration.failure);
  return names;
}

} // namespace

std::vector<std::string> load(const std::string &path) {
  static std::mutex mutex;
  static std::map<void *, std::vector<std::string>> loaded;
  std::lock_guard<std::mutex> lock(mutex);
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw PluginError(dlerror());
  if (auto known = loaded.find(library); known != loaded.end())
    return known->second;
  // Never closed, because its passes may be in use.
  return loaded[library] = registerPasses(pluginOf(library, path), path);
}

} // namespace hlotag::plugin
