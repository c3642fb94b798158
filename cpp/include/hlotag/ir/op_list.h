// SPDX-License-Identifier: Apache-2.0
//
// The operations of a module in a row. Walking through MLIR's linked lists waits for memory at each
// step; passes that look at most operations by name need touch only those they want.
#pragma once

#include "hlotag/ir/operation.h"

#include <cstdint>
#include <vector>

namespace hlotag::ir {

/// What `walk` visits, in its order. A snapshot: not valid once operations came, moved or went.
class OpList {
public:
  struct Entry {
    Operation op;
    Identifier name;
    uint32_t numNested; ///< operations inside it, at any depth; they follow
    bool hasRegions;

    // Made in place: copied at once after small stores, it waits for them (as in Rewriter::Change).
    Entry(Operation op, bool hasRegions)
        : op(op), name(op.name()), numNested(0), hasRegions(hasRegions) {}
  };

  explicit OpList(Operation root);

  size_t size() const { return entries_.size(); }
  const Entry &operator[](size_t index) const { return entries_[index]; }
  const Entry *begin() const { return entries_.data(); }
  const Entry *end() const { return begin() + size(); }
  /// The first operation that is not inside that one: the next in its block, if there is one.
  size_t after(size_t index) const { return index + 1 + entries_[index].numNested; }
  /// For a loop that looks into all operations and is now at that one: starts to fetch a later one.
  void prefetch(size_t index) const {
    constexpr size_t kAhead = 16;
    if (index + kAhead >= size())
      return;
    const char *op = static_cast<const char *>(entries_[index + kAhead].op.opaque());
    ir::prefetch(op);
    ir::prefetch(op + 64);
  }

private:
  std::vector<Entry> entries_;
};

} // namespace hlotag::ir
