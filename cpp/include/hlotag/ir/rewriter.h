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
  bool setLocation(Value blockArgument, Location location);
  bool setOperand(Operation op, intptr_t index, Value value);

  /// Inserts `op` into `block` before `before`; at the end if `before` is null.
  Operation insert(OwnedOperation op, Block block, Operation before);
  /// Moves `op` into `block` before `before`; at the end if `before` is null.
  void move(Operation op, Block block, Operation before);

  /// The number of changes since the last commit.
  size_t numChanges() const { return journal_.size(); }
  /// The number of insertions and moves ever made: a list of the module's operations is valid while
  /// this number stays the same.
  size_t numMoves() const { return numMoves_; }

  /// Verifies `root` unless none of the changes since `mark` can make an operation invalid: changes
  /// of locations and frontend attributes, and removals of in-flight attributes.
  bool verify(Operation root, size_t mark = 0) const;

  /// Undoes all changes, newest first.
  void rollback();
  /// Makes the changes permanent.
  void commit() { journal_.clear(); }

private:
  enum class Kind : unsigned char {
    Attr,
    Location,
    ArgLocation,
    Operand,
    Insert, // this kind and the next change the list of operations
    Move
  };
  struct Change {
    Kind kind;
    unsigned index;      // Operand
    const void *subject; // MlirOperation, or MlirValue for ArgLocation
    const void *where;   // Attr: the name; Move: the block
    const void *former;  // value, location, operand; Move: the operation that came next
  };

  void record(Kind kind, const void *subject, const void *where, const void *former,
              unsigned index = 0) {
    numMoves_ += kind >= Kind::Insert;
    journal_.push_back({kind, index, subject, where, former});
  }
  /// Whether an operation may have become invalid by the change. MLIR's verifiers ignore frontend
  /// attributes; `hlotag-verify` checks them.
  bool mayInvalidate(const Change &change) const;
  void undo(const Change &change);

  MlirContext context_;
  Identifier frontendAttributes_;
  std::vector<Change> journal_;
  size_t numMoves_ = 0;
};

} // namespace hlotag::ir
