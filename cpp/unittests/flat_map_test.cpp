// SPDX-License-Identifier: Apache-2.0
#include "hlotag/ir/flat_map.h"
#include "testing.h"

#include <random>
#include <unordered_map>
#include <vector>

using namespace hlotag;

namespace {

const void *address(uint64_t bits) { return reinterpret_cast<const void *>(uintptr_t(bits)); }

/// Returns true if a map of `keys` finds each with its value, and has no others.
template <class Key> bool knowsAll(const std::vector<Key> &keys) {
  ir::FlatMap<Key, size_t> map;
  std::unordered_map<Key, size_t> expected;
  for (Key key : keys) {
    auto [value, isNew] = map.insert(key);
    if (isNew != (expected.count(key) == 0))
      return false;
    *value = expected[key] = map.size();
  }
  for (const auto &[key, value] : expected)
    if (!map.find(key) || *map.find(key) != value)
      return false;
  return map.size() == expected.size();
}

} // namespace

TEST(flat_map_knows_what_was_inserted) {
  // Strides of consecutive operations, of pages, of powers of two and of words; then random keys.
  for (uint64_t step : {288, 4096, 1 << 20, 8}) {
    std::vector<const void *> keys;
    for (uint64_t i = 0; i < 5000; ++i)
      keys.push_back(address(0x7f0000001000 + i % 4000 * step));
    CHECK(knowsAll(keys));
  }
  std::mt19937_64 random(0);
  std::vector<uint64_t> numbers;
  for (int i = 0; i < 5000; ++i)
    numbers.push_back(i % 2 ? random() : random() % 1000);
  CHECK(knowsAll(numbers));
}

TEST(flat_map_knows_nothing_else) {
  ir::PointerMap<int> map;
  CHECK(!map.find(nullptr));
  CHECK(!map.find(address(64)));
  CHECK_EQ(*map.insert(address(64)).first, 0);
  CHECK(!map.find(address(128)));
  CHECK(!map.find(nullptr));
  CHECK_EQ(map.size(), 1u);
}
