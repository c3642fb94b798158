// SPDX-License-Identifier: Apache-2.0
#include "hlotag/pass/registry.h"
#include "hlotag/pass/pipeline.h"

#include <map>
#include <mutex>

namespace hlotag::pass {

namespace {

/// No factory runs under the lock: it may be anybody's code.
using Factories = std::map<std::string, PassFactory, std::less<>>;

struct Registry {
  std::mutex mutex;
  Factories factories;
};

Registry &registry() {
  static Registry instance;
  return instance;
}

} // namespace

void registerPass(PassFactory create) {
  std::string argument(create()->info().argument);
  std::lock_guard<std::mutex> lock(registry().mutex);
  registry().factories[std::move(argument)] = std::move(create);
}

std::string registerNew(std::vector<std::pair<std::string, PassFactory>> passes) {
  std::lock_guard<std::mutex> lock(registry().mutex);
  auto factories = registry().factories;
  for (auto &[argument, create] : passes)
    if (!factories.emplace(argument, std::move(create)).second)
      return argument;
  registry().factories = std::move(factories);
  return {};
}

std::unique_ptr<Pass> lookup(std::string_view argument) {
  PassFactory create;
  {
    std::lock_guard<std::mutex> lock(registry().mutex);
    auto found = registry().factories.find(argument);
    if (found != registry().factories.end())
      create = found->second;
  }
  return create ? create() : nullptr;
}

std::vector<std::unique_ptr<Pass>> allPasses() {
  Factories factories;
  {
    std::lock_guard<std::mutex> lock(registry().mutex);
    factories = registry().factories;
  }
  std::vector<std::unique_ptr<Pass>> passes;
  for (const auto &[argument, create] : factories)
    passes.push_back(create());
  return passes;
}

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
