// SPDX-License-Identifier: Apache-2.0
//
// A hash map from MLIR handles, for memo tables in loops over all operations: open addressing,
// no allocation per entry, no erasing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace hlotag::ir {

template <class V> class PointerMap {
public:
  /// The value of `key`, or null. Inserting invalidates the pointer.
  V *find(const void *key) {
    return const_cast<V *>(static_cast<const PointerMap *>(this)->find(key));
  }
  const V *find(const void *key) const {
    if (slots_.empty())
      return nullptr;
    size_t at = slotOf(key);
    return slots_[at].key == key ? &slots_[at].value : nullptr;
  }

  /// The value of `key`, default made if new; and whether it is new. `key` must not be null.
  std::pair<V *, bool> insert(const void *key) {
    if ((size_ + 1) * 4 > slots_.size() * 3)
      grow();
    size_t at = slotOf(key);
    bool isNew = slots_[at].key != key;
    if (isNew) {
      slots_[at].key = key;
      ++size_;
    }
    return {&slots_[at].value, isNew};
  }

  size_t size() const { return size_; }
  /// Before that many are inserted: the table is then made once.
  void reserve(size_t number) {
    while (slots_.size() * 3 < (number + 1) * 4)
      grow();
  }

private:
  struct Slot {
    const void *key = nullptr;
    V value{};
  };

  size_t slotOf(const void *key) const {
    uint64_t bits = reinterpret_cast<uintptr_t>(key);
    size_t mask = slots_.size() - 1;
    size_t at = size_t((bits * 0x9E3779B97F4A7C15ull) >> 32) & mask;
    while (slots_[at].key && slots_[at].key != key)
      at = (at + 1) & mask;
    return at;
  }

  void grow() {
    std::vector<Slot> old = std::move(slots_);
    slots_ = std::vector<Slot>(old.empty() ? 64 : old.size() * 2);
    for (Slot &slot : old)
      if (slot.key)
        slots_[slotOf(slot.key)] = std::move(slot);
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
};

} // namespace hlotag::ir
