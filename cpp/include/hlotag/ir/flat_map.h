// SPDX-License-Identifier: Apache-2.0
//
// How are values looked up by MLIR handle or number, in loops over all operations of a module?
//
// No allocation per key, no erasure. Keys are in insertion order and close keys have close
// slots, so a loop over a module accesses the table in order. std::unordered_map misses the cache
// at each look-up, so its time per operation grows with the module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace hlotag::ir {

template <class K, class V> class FlatMap {
public:
  /// Returns the value of `key`, or null. Insertion invalidates the pointer.
  V *find(K key) { return const_cast<V *>(static_cast<const FlatMap *>(this)->find(key)); }
  const V *find(K key) const {
    if (heads_.empty())
      return nullptr;
    uint32_t at = heads_[slotOf(key)];
    while (at != kEmpty && nodes_[at].key != key)
      at = nodes_[at].next;
    return at == kEmpty ? nullptr : &nodes_[at].value;
  }

  /// Returns the value of `key`, default constructed if new, and whether it is new.
  std::pair<V *, bool> insert(K key) {
    if (V *known = find(key))
      return {known, false};
    if (nodes_.size() * 3 >= heads_.size() * 2)
      rehash(heads_.empty() ? kMinSlots : heads_.size() * 2);
    uint32_t &head = heads_[slotOf(key)];
    nodes_.push_back({key, head, V{}});
    head = uint32_t(nodes_.size() - 1);
    return {&nodes_.back().value, true};
  }

  size_t size() const { return nodes_.size(); }

private:
  static constexpr uint32_t kEmpty = ~uint32_t(0);
  static constexpr size_t kMinSlots = 64; // a power of two
  struct Node {
    K key;
    uint32_t next; ///< the entry before in the same slot
    V value;
  };

  /// Keeps the order of keys within a page, and spreads pages: addresses repeat at powers of two.
  static uint64_t hash(const void *key) {
    auto bits = reinterpret_cast<uintptr_t>(key);
    return (((bits >> 12) * 0x9E3779B97F4A7C15ull) >> 32) + (bits >> 7);
  }
  static uint64_t hash(const std::pair<const void *, const void *> &key) {
    return hash(key.first) + hash(key.second) * 3;
  }
  /// A number, or two numbers in one.
  static uint64_t hash(uint64_t key) { return key + (key >> 32) * 0x9E3779B97F4A7C15ull; }
  size_t slotOf(K key) const { return size_t(hash(key)) & (heads_.size() - 1); }

  void rehash(size_t size) {
    heads_.assign(size, kEmpty);
    for (size_t at = 0; at < nodes_.size(); ++at) {
      uint32_t &head = heads_[slotOf(nodes_[at].key)];
      nodes_[at].next = head;
      head = uint32_t(at);
    }
  }

  std::vector<uint32_t> heads_; // by slot: the last entry
  std::vector<Node> nodes_;
};

template <class V> using PointerMap = FlatMap<const void *, V>;
template <class V> using PointerPairMap = FlatMap<std::pair<const void *, const void *>, V>;

} // namespace hlotag::ir
