// SPDX-License-Identifier: Apache-2.0
//
// How are answers kept by MLIR handle? A hash map whose look-ups return pointers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>

namespace hlotag::ir {

/// Keys are pointers, pairs of pointers, or numbers.
template <class K, class V> class FlatMap {
public:
  /// Returns the value of `key`, or null. The pointer stays valid.
  V *find(const K &key) {
    auto found = map_.find(key);
    return found == map_.end() ? nullptr : &found->second;
  }
  const V *find(const K &key) const { return const_cast<FlatMap *>(this)->find(key); }

  /// Returns the value of `key`, default constructed if new, and whether it is new.
  std::pair<V *, bool> insert(const K &key) {
    auto [entry, isNew] = map_.try_emplace(key);
    return {&entry->second, isNew};
  }
  V &add(const K &key) { return map_[key]; }

  size_t size() const { return map_.size(); }
  void reserve(size_t number) { map_.reserve(number); }

private:
  struct Hash {
    size_t operator()(const void *key) const { return reinterpret_cast<uintptr_t>(key) >> 4; }
    size_t operator()(const std::pair<const void *, const void *> &key) const {
      return (*this)(key.first) * 0x9E3779B97F4A7C15ull + (*this)(key.second);
    }
    size_t operator()(uint64_t key) const { return size_t(key); }
  };
  std::unordered_map<K, V, Hash> map_;
};

template <class V> using PointerMap = FlatMap<const void *, V>;
template <class V> using PointerPairMap = FlatMap<std::pair<const void *, const void *>, V>;

} // namespace hlotag::ir
