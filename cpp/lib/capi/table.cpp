// SPDX-License-Identifier: Apache-2.0
#include "hlotag/capi/table.h"

#include <atomic>

namespace hlotag::capi {

Table functions;

namespace {

std::atomic<bool> installed{false};

template <class Function> void assign(Function *&slot, void *address) {
  slot = reinterpret_cast<Function *>(address);
}

} // namespace

std::vector<std::string_view> requiredNames() {
  return {
#define HLOTAG_REQUIRED(ret, name, args) #name,
#include "hlotag/capi/functions.def"
  };
}

std::vector<std::string_view> optionalNames() {
  return {
#define HLOTAG_OPTIONAL(ret, name, args) #name,
#include "hlotag/capi/functions.def"
  };
}

std::string_view typeOf(std::string_view name) {
#define HLOTAG_REQUIRED(ret, function, args)                                                       \
  if (name == #function)                                                                           \
    return #ret " " #args;
#define HLOTAG_OPTIONAL(ret, function, args) HLOTAG_REQUIRED(ret, function, args)
#include "hlotag/capi/functions.def"
  return {};
}

void *find(std::string_view name, std::string_view type) {
  if (type.empty() || typeOf(name) != type)
    return nullptr;
#define HLOTAG_REQUIRED(ret, function, args)                                                       \
  if (name == #function)                                                                           \
    return reinterpret_cast<void *>(functions.function);
#define HLOTAG_OPTIONAL(ret, function, args) HLOTAG_REQUIRED(ret, function, args)
#include "hlotag/capi/functions.def"
  return nullptr;
}

bool isInstalled() { return installed.load(std::memory_order_acquire); }

std::vector<std::string> install(const Resolver &resolve) {
  Table filled;
  std::vector<std::string> missing;
#define HLOTAG_REQUIRED(ret, name, args)                                                           \
  assign(filled.name, resolve(#name));                                                             \
  if (!filled.name)                                                                                \
    missing.emplace_back(#name);
#define HLOTAG_OPTIONAL(ret, name, args) assign(filled.name, resolve(#name));
#include "hlotag/capi/functions.def"
  if (!missing.empty())
    return missing;
  functions = filled;
  installed.store(true, std::memory_order_release);
  return {};
}

} // namespace hlotag::capi
