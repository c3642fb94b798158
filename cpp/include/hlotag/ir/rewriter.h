// SPDX-License-Identifier: Apache-2.0
//
// How is a module changed so that each change can be undone?
#pragma once

#include "hlotag/ir/operation.h"

#include <cstddef>
#include <vector>

namespace hlotag::ir {

/// Changes a module and keeps a journal. The destructor rolls back changes that were not committed.
/// Nothing else may change the module before commit or rollback.
class Rewriter {
public:
  explicit Rewriter(MlirContext context);
  ~Rewriter() { rollback(); }
  Rewriter(const Rewriter &) = delete;
  Rewriter &operator=(const Rewriter &) = delete;

  MlirContext context() const { return context_; }

  /// Sets an attribute; a null `value` removes it. Returns whether the operation changed.
  bool setAttr(Operation op, Identifier name, Attribute value);
  bool removeAttr(Operation op, Identifier name) { return setAttr(op, name, Attribute()); }
  bool setLocation(Operation op, Location location);
  /// Replaces the locations of the arguments of blocks in `op` by `change(location)`.
  template <class Change> void changeArgumentLocations(Operation op, Change change) {
    for (Region region : op.regions())
      for (Block block : region.blocks())
        for (Value argument : block.arguments())
          setLocation(argument, change(argument.location()));
  }

  /// Inserts `op` into `block` before `before`; at the end if `before` is null.
  Operation insert(OwnedOperation op, Block block, Operation before);

  /// The number of changes since the last commit.
  size_t numChanges() const { return journal_.size(); }
  /// The number of insertions ever made or undone: a list of the module's operations is valid while
  /// this number stays the same.
  size_t numInsertions() const { return numInsertions_; }

  /// Verifies `root` unless none of the changes can make an operation invalid: changes of locations
  /// and frontend attributes, and removals of in-flight attributes.
  bool verify(Operation root) const;

  /// Undoes all changes, newest first.
  void rollback();
  /// Makes the changes permanent.
  void commit() { journal_.clear(); }

private:
  void setLocation(Value blockArgument, Location location);

  enum class Kind : unsigned char { Attr, Location, ArgLocation, Insert };
  struct Change {
    Kind kind;
    const void *subject; // MlirOperation, or MlirValue for ArgLocation
    const void *former;  // value or location
    const void *name;    // Attr
  };

  /// Whether an operation may have become invalid by the change. MLIR's verifiers ignore frontend
  /// attributes; `hlotag-finalize` checks them.
  bool mayInvalidate(const Change &change) const;
  void undo(const Change &change);

  MlirContext context_;
  Identifier frontendAttributes_;
  std::vector<Change> journal_;
  size_t numInsertions_ = 0;
};

} // namespace hlotag::ir
