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
struct Entry {
  std::string_view name;
  std::string_view type;
  std::size_t offset; // in Table
};

constexpr Entry entries[] = {
#define HLOTAG_REQUIRED(ret, name, args) {#name, #ret " " #args, offsetof(Table, name)},
#include "hlotag/capi/functions.def"
};

const Entry *entryOf(std::string_view name) {
  auto isIt = [&](const Entry &entry) { return entry.name == name; };
  const Entry *found = std::find_if(std::begin(entries), std::end(entries), isIt);
  return found == std::end(entries) ? nullptr : found;
}

/// Every slot of a table is a function pointer; these have one size.
void *get(const Table &table, const Entry &entry) {
  void *address;
  std::memcpy(static_cast<void *>(&address), reinterpret_cast<const char *>(&table) + entry.offset,
              sizeof(address));
  return address;
}

void set(Table &table, const Entry &entry, void *address) {
  std::memcpy(reinterpret_cast<char *>(&table) + entry.offset, static_cast<const void *>(&address),
              sizeof(address));
}

} // namespace

std::vector<std::string_view> requiredNames() {
  std::vector<std::string_view> names;
  for (const Entry &entry : entries)
    names.push_back(entry.name);
  return names;
}

std::string_view typeOf(std::string_view name) {
  const Entry *entry = entryOf(name);
  return entry ? entry->type : std::string_view();
}

void *find(std::string_view name, std::string_view type) {
  const Entry *entry = entryOf(name);
  return entry && entry->type == type ? get(functions, *entry) : nullptr;
}

bool isInstalled() { return installed.load(std::memory_order_acquire); }

std::vector<std::string> install(const Resolver &resolve) {
  Table filled;
  std::vector<std::string> missing;
  for (const Entry &entry : entries) {
    void *address = resolve(entry.name);
    set(filled, entry, address);
    if (!address)
      missing.emplace_back(entry.name);
  }
  if (!missing.empty())
    return missing;
  functions = filled;
  installed.store(true, std::memory_order_release);
  return missing;
}

} // namespace hlotag::capi
