// SPDX-License-Identifier: Apache-2.0
#include "hlotag/pass/registry.h"

#include <algorithm>
#include <map>
#include <mutex>

namespace hlotag::pass {

namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, PassFactory, std::less<>> factories;
};

Registry &registry() {
  static Registry instance;
  return instance;
}

size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
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
  std::lock_guard<std::mutex> lock(registry().mutex);
  auto found = registry().factories.find(argument);
  return found == registry().factories.end() ? nullptr : found->second();
}

std::vector<std::unique_ptr<Pass>> allPasses() {
  std::lock_guard<std::mutex> lock(registry().mutex);
  std::vector<std::unique_ptr<Pass>> passes;
  for (const auto &entry : registry().factories)
    passes.push_back(entry.second());
  return passes;
}

std::vector<std::string> nearest(std::string_view word, const std::vector<std::string> &names,
                                 size_t limit) {
  std::vector<std::pair<size_t, std::string>> ranked;
  for (const std::string &name : names) {
    size_t distance = editDistance(word, name);
    if (distance <= std::max<size_t>(2, name.size() / 3))
      ranked.emplace_back(distance, name);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> result;
  for (size_t i = 0; i < std::min(limit, ranked.size()); ++i)
    result.push_back(std::move(ranked[i].second));
  return result;
}

} // namespace hlotag::pass
