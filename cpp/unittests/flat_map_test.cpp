// SPDX-License-Identifier: Apache-2.0
#include "analysis/arena_list.h"
#include "hlotag/ir/flat_map.h"
#include "testing.h"

#include <algorithm>
#include <vector>

using namespace hlotag;

namespace {

const void *address(uint64_t bits) { return reinterpret_cast<const void *>(uintptr_t(bits)); }

} // namespace

TEST(flat_map_keys) {
  ir::FlatMap<uint64_t, int> numbers;
  ir::PointerPairMap<int> pairs;
  for (uint64_t i = 0; i < 1000; ++i) {
    *numbers.insert(i << 32 | i % 7).first = int(i);
    *pairs.insert({address(64), address(64 * i)}).first = int(i);
  }
  CHECK_EQ(numbers.size(), 1000u);
  CHECK_EQ(*numbers.find(uint64_t(8) << 32 | 1), 8);
  CHECK_EQ(*pairs.find({address(64), address(128)}), 2);
  CHECK(!pairs.find({address(128), address(64)}));
  CHECK(!numbers.insert(uint64_t(8) << 32 | 1).second);
}

TEST(flat_map_knows_nothing_else) {
  ir::PointerMap<int> map;
  CHECK(!map.find(nullptr));
  map.reserve(100);
  CHECK(!map.find(address(64)));
  CHECK_EQ(*map.insert(address(64)).first, 0);
  CHECK(!map.find(address(128)));
  CHECK(!map.find(nullptr));
  CHECK_EQ(map.size(), 1u);
}

TEST(arena_list_grows) {
  analysis::Arena arena;
  analysis::ArenaList<int> list;
  CHECK(list.empty());
  std::vector<int> numbers;
  for (int i = 0; i < 100; ++i) {
    list.push_back(arena, i);
    numbers.push_back(i);
  }
  CHECK_EQ(list.size(), numbers.size());
  CHECK(std::equal(list.begin(), list.end(), numbers.begin()));
}
