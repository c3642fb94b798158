// SPDX-License-Identifier: Apache-2.0
//
// Small lists that there are several of for each operation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory_resource>

namespace hlotag::analysis {

using Arena = std::pmr::monotonic_buffer_resource;

/// A list whose elements lie in an arena: half as large as a vector that knows where. A copy is a
/// view: only one of them may grow.
template <class T> class ArenaList {
public:
  ArenaList() = default;
  ArenaList(Arena &arena, T value) { push_back(arena, value); }

  const T *begin() const { return data_; }
  const T *end() const { return data_ + size_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T &operator[](size_t index) const { return data_[index]; }

  void reserve(Arena &arena, size_t capacity) {
    if (capacity <= capacity_)
      return;
    T *data = static_cast<T *>(arena.allocate(capacity * sizeof(T), alignof(T)));
    std::copy(begin(), end(), data);
    data_ = data;
    capacity_ = uint32_t(capacity);
  }
  void sort() { std::sort(data_, data_ + size_); }
  void push_back(Arena &arena, T value) {
    if (size_ == capacity_)
      reserve(arena, size_ == 0 ? 2 : size_t(size_) * 2);
    data_[size_++] = value;
  }

private:
  static_assert(std::is_trivially_copyable_v<T>);
  T *data_ = nullptr;
  uint32_t size_ = 0, capacity_ = 0;
};

} // namespace hlotag::analysis
