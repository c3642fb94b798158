// SPDX-License-Identifier: Apache-2.0
//
// Every change to a module goes through here, so that it can be undone.
#pragma once

#include "hlotag/ir/operation.h"

#include <cstddef>
#include <deque>
#include <vector>

namespace hlotag::ir {

/// Changes a module and remembers how to change it back. A transaction: what is not committed
/// when this is destroyed is rolled back.
///
/// Erased operations are only taken out of their block until `commit()`; their operands still
/// count as uses until then. Nothing else may change the module between the first change and
/// commit or rollback.
class Rewriter {
public:
  explicit Rewriter(MlirContext context);
  ~Rewriter() { rollback(); }
  Rewriter(const Rewriter &) = delete;
  Rewriter &operator=(const Rewriter &) = delete;

  MlirContext context() const { return context_; }

  /// Sets an attribute; a null `value` removes it. Returns whether that changed anything.
  bool setAttr(Operation op, Identifier name, Attribute value);
  bool removeAttr(Operation op, Identifier name) { return setAttr(op, name, Attribute()); }
  /// The same for a caller that has just read the present value.
  bool replaceAttr(Operation op, Identifier name, Attribute present, Attribute value);

  bool setLocation(Operation op, Location location) {
    return replaceLocation(op, op.location(), location);
  }
  bool replaceLocation(Operation op, Location present, Location location);
  bool setLocation(Value blockArgument, Location location);
  bool setOperand(Operation op, intptr_t index, Value value);

  /// Puts `op` into `block` before `before`, at the end if that is null.
  Operation insert(OwnedOperation op, Block block, Operation before);
  /// Moves `op` into `block` before `before`, at the end if that is null.
  void move(Operation op, Block block, Operation before);
  /// Removes `op`. Its results must have no uses: otherwise throws IRError.
  void erase(Operation op);

  /// Changes since the last commit.
  size_t numChanges() const { return journal_.size(); }
  /// How often operations came, moved or went, ever; what lists them is valid while this is the
  /// same.
  size_t numMoves() const { return numMoves_; }

  /// Verifies what the changes since `mark` may have made invalid: the operations whose attributes
  /// changed, or all of `root` if operations, operands or symbols did. Locations and the in-flight
  /// attributes of ours that go away cannot.
  bool verify(Operation root, size_t mark = 0) const;

  /// Takes the changes back, newest first. With `mark` (a former `numChanges()`), back to then.
  void rollback(size_t mark = 0);
  /// Keeps the changes for good.
  void commit();

private:
  enum class Kind : unsigned char {
    Attr,
    Location,
    ArgLocation,
    Operand,
    Insert, // from here on operations come, move or go
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
    // If one of the lists cannot grow, rollback() drops the index without a change.
    if (!isHarmless(kind, where))
      toVerify_.push_back(journal_.size());
    journal_.emplace_back(kind, subject, where, former, index);
  }
  /// Whether no operation can become invalid by that. No verifier looks at frontend attributes, but
  /// MLIR walks all of the operation to say so; what is to be checked is up to `hlotag-verify`.
  bool isHarmless(Kind kind, const void *where) const {
    return kind == Kind::Location || kind == Kind::ArgLocation ||
           (kind == Kind::Attr && where == frontendAttributes_.opaque());
  }
  void undo(const Change &change);

  MlirContext context_;
  Identifier frontendAttributes_;
  std::deque<Change> journal_;   // grows without being copied
  std::vector<size_t> toVerify_; // of the journal, what is not harmless
  size_t numMoves_ = 0;
};

} // namespace hlotag::ir
