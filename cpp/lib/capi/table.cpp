// SPDX-License-Identifier: Apache-2.0
#include "hlotag/capi/table.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <iterator>

namespace hlotag::capi {

Table functions;

namespace {

std::atomic<bool> installed{false};

/// One function of the table.
struct Slot {
  std::string_view name;
  std::string_view type;
  std::size_t offset; // in Table
};

constexpr Slot slots[] = {
#define HLOTAG_REQUIRED(ret, name, args) {#name, #ret " " #args, offsetof(Table, name)},
#include "hlotag/capi/functions.def"
};

const Slot *findSlot(std::string_view name) {
  auto isIt = [&](const Slot &slot) { return slot.name == name; };
  const Slot *found = std::find_if(std::begin(slots), std::end(slots), isIt);
  return found == std::end(slots) ? nullptr : found;
}

/// Every slot of a table is a function pointer; these have one size.
void *get(const Table &table, const Slot &slot) {
  void *address;
  std::memcpy(static_cast<void *>(&address), reinterpret_cast<const char *>(&table) + slot.offset,
              sizeof(address));
  return address;
}

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

std::string_view typeOf(std::string_view name) {
  const Slot *slot = findSlot(name);
  return slot ? slot->type : std::string_view();
}

void *find(std::string_view name, std::string_view type) {
  const Slot *slot = findSlot(name);
  return slot && slot->type == type ? get(functions, *slot) : nullptr;
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
