// SPDX-License-Identifier: Apache-2.0
//
// How is a module changed so that each change can be undone?
#pragma once

#include "hlotag/ir/operation.h"

#include <cstddef>
#include <deque>
#include <vector>

namespace hlotag::ir {

/// Changes a module and keeps a journal. The destructor rolls back changes that were not committed.
///
/// `commit()` destroys erased operations; until then they are detached, and their operands still
/// count as uses. Nothing else may change the module before commit or rollback.
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
  /// As `setAttr`, for a caller that knows the present value.
  bool replaceAttr(Operation op, Identifier name, Attribute present, Attribute value);

  bool setLocation(Operation op, Location location) {
    return replaceLocation(op, op.location(), location);
  }
  bool replaceLocation(Operation op, Location present, Location location);
  bool setLocation(Value blockArgument, Location location);
  bool setOperand(Operation op, intptr_t index, Value value);

  /// Inserts `op` into `block` before `before`; at the end if `before` is null.
  Operation insert(OwnedOperation op, Block block, Operation before);
  /// Moves `op` into `block` before `before`; at the end if `before` is null.
  void move(Operation op, Block block, Operation before);
  /// Erases `op`. Throws IRError if a result has uses.
  void erase(Operation op);

  /// The number of changes since the last commit.
  size_t numChanges() const { return journal_.size(); }
  /// The number of insertions, moves and erasures ever made: a list of the module's operations is
  /// valid while this number stays the same.
  size_t numMoves() const { return numMoves_; }

  /// Verifies what the changes since `mark` may have made invalid: operations with changed
  /// attributes, or all of `root` if operations, operands or symbols changed. Locations, frontend
  /// attributes and removed in-flight attributes cannot make an operation invalid.
  bool verify(Operation root, size_t mark = 0) const;

  /// Undoes changes, newest first, until `mark` are left (a former `numChanges()`).
  void rollback(size_t mark = 0);
  /// Makes the changes permanent.
  void commit();

private:
  enum class Kind : unsigned char {
    Attr,
    Location,
    ArgLocation,
    Operand,
    Insert, // this kind and the following ones change the list of operations
    Move,
    Erase
  };
  struct Change {
    Kind kind;
    unsigned index;      // Operand
    const void *subject; // MlirOperation, or MlirValue for ArgLocation
    const void *where;   // Attr: the name; Move, Erase: the block
    const void *former;  // value, location, operand; Move, Erase: the operation that came next

    // For making it in place: copied right after its small members are stored, it would wait for
    // the stores.
    Change(Kind kind, const void *subject, const void *where, const void *former, unsigned index)
        : kind(kind), index(index), subject(subject), where(where), former(former) {}
  };

  void record(Kind kind, const void *subject, const void *where, const void *former,
              unsigned index = 0) {
    numMoves_ += kind >= Kind::Insert;
    // If `journal_` cannot grow, rollback() drops the index.
    if (!isHarmless(kind, where))
      toVerify_.push_back(journal_.size());
    journal_.emplace_back(kind, subject, where, former, index);
  }
  /// Whether no operation can become invalid by the change. `hlotag-verify` checks frontend
  /// attributes; MLIR's verifiers ignore them, after a walk over the whole operation.
  bool isHarmless(Kind kind, const void *where) const {
    return kind == Kind::Location || kind == Kind::ArgLocation ||
           (kind == Kind::Attr && where == frontendAttributes_.opaque());
  }
  void undo(const Change &change);

  MlirContext context_;
  Identifier frontendAttributes_;
  std::deque<Change> journal_;   // grows without being copied
  std::vector<size_t> toVerify_; // indices of changes that are not harmless
  size_t numMoves_ = 0;
};

} // namespace hlotag::ir
