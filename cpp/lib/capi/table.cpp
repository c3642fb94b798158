// SPDX-License-Identifier: Apache-2.0
#include "hlotag/capi/table.h"

#include <atomic>
#include <cstddef>
#include <cstring>

namespace hlotag::capi {

Table functions;

namespace {

std::atomic<bool> installed{false};

/// One function of the table.
struct Slot {
  std::string_view name;
  std::size_t offset; // in Table
};

constexpr Slot slots[] = {
#define HLOTAG_REQUIRED(ret, name, args) {#name, offsetof(Table, name)},
#include "hlotag/capi/functions.def"
};

/// Every slot of a table is a function pointer; these have one size.
void set(Table &table, const Slot &slot, void *address) {
  std::memcpy(reinterpret_cast<char *>(&table) + slot.offset, static_cast<const void *>(&address),
              sizeof(address));
}

} // namespace

std::vector<std::string_view> requiredNames() {
  std::vector<std::string_view> names;
  for (const Slot &slot : slots)
    names.push_back(slot.name);
  return names;
}

bool isInstalled() { return installed.load(std::memory_order_acquire); }

std::vector<std::string> install(const Resolver &resolve) {
  Table filled;
  std::vector<std::string> missing;
  for (const Slot &slot : slots) {
    void *address = resolve(slot.name);
    set(filled, slot, address);
    if (!address)
      missing.emplace_back(slot.name);
  }
  if (!missing.empty())
    return missing;
  functions = filled;
  installed.store(true, std::memory_order_release);
  return missing;
}

} // namespace hlotag::capi
