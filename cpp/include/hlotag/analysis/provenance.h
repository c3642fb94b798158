// SPDX-License-Identifier: Apache-2.0
//
// Where an operation comes from: the user's scopes, the transforms JAX applied, the primitive and
// the line of source.
#pragma once

#include "hlotag/ir/ir.h"

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace hlotag::analysis {

/// An interned string: equal ids are equal texts. 0 is the empty one.
using TextId = uint32_t;

/// What is known about an operation. One object is shared by all operations that are alike.
struct Origin {
  /// Scopes, outermost first, joined by `/`: transforms unwrapped, `jit(...)`, `checkpoint`,
  /// `rematted_computation`, `closed_call` and `eval_jaxpr` left out, JAX's `while/body`,
  /// `cond/branch_1_fun` kept, composed through callers: `decoder/layer_3/attention`.
  TextId scope = 0;
  TextId localScope = 0; ///< the same without what callers add
  /// Letters, outermost first: `j`vp, `t`ranspose, `v`map; e.g. `tj`.
  TextId transforms = 0;
  TextId primitive = 0;        ///< JAX's name of it: `dot_general`, `add_any`; may be empty
  ir::FileLoc source;          ///< innermost line of user code, or null
  uint32_t sourceKey = 0;      ///< a number for `source`, with its end where known; 0 if none
  const void *trace = nullptr; ///< identifies the call stack, or null; equal for forward and
                               ///< backward operations of one equation, but for jax.checkpoint
  bool expanded = false;       ///< one of several that JAX wrote out for one equation (`logistic`)
  bool transposed = false;     ///< computed for a backward pass
  bool checkpointed = false;   ///< in a function under jax.checkpoint, where JAX says so
  bool rematted = false;       ///< of those, a forward operation that is computed again
};

/// Answers for the operations of one module. Text is handled once per distinct location and
/// caller; per operation it is two or three hash look-ups. The module's locations, functions and
/// calls must not change while it is in use; attributes may.
///
/// Names inside a function are relative to its callers. A function that is called from several
/// places has the scopes and transforms that all callers agree on (their common prefix), and is
/// transposed or rematted only if all calls are: nothing is said of an operation that is wrong for
/// one of its runs.
class Provenance {
public:
  explicit Provenance(const ir::OpList &operations);
  Provenance(const Provenance &) = delete;
  Provenance &operator=(const Provenance &) = delete;

  const Origin &of(ir::Operation op) { return of(op, op.parent()); }
  /// The same, for what is known to be in a region of `parent`.
  const Origin &of(ir::Operation op, ir::Operation parent);

  bool isTransposed(ir::Operation op) { return of(op).transposed; }

  /// Stays valid as long as this object.
  std::string_view text(TextId id) const { return *texts_[id]; }
  TextId intern(std::string_view text);

  /// The func.func that `call` calls, in its own module; null if there is none.
  ir::Operation calleeOf(ir::Operation call) const;
  /// The calls of a function.
  const std::vector<ir::Operation> &callsOf(ir::Operation function) const;

private:
  /// What a location alone says.
  struct Named {
    Origin origin;
    TextId head = 0;
  };
  /// What a name says.
  struct Path {
    TextId head = 0, scope = 0, transforms = 0, primitive = 0;
    bool transposed = false, checkpointed = false, rematted = false;
  };
  struct File {
    uint32_t key = 0;
    bool isRange = false; ///< it has an end
  };
  /// What surrounds an operation: the callers of its function, and the region operation it is in.
  struct Context {
    const Origin *base = nullptr;   ///< for names that continue the region's
    const Origin *region = nullptr; ///< for those that start anew
    TextId regionHead = 0;          ///< the region's first element; 0: directly in the function
    /// Whether locations alone say all.
    bool isNothing() const {
      return !regionHead && !base->scope && !base->localScope && !base->transforms &&
             !base->transposed && !base->checkpointed && !base->rematted;
    }
    bool operator==(const Context &o) const {
      return base == o.base && region == o.region && regionHead == o.regionHead;
    }
  };
  struct Hash {
    static size_t mix(const void *a, const void *b) {
      return (reinterpret_cast<uintptr_t>(a) >> 3) * 0x9E3779B97F4A7C15ull +
             (reinterpret_cast<uintptr_t>(b) >> 3);
    }
    size_t operator()(const Context &c) const { return mix(c.base, c.region) + c.regionHead; }
  };

  const Named &named(ir::Location loc, bool isCall = false);
  Named parse(ir::Location loc, bool isCall);
  const Path &pathOf(ir::Identifier name);
  Path pathOf(const std::vector<ir::Identifier> &names, bool isCall);
  const File &file(ir::FileLoc loc);
  bool isFrame(ir::NameLoc name);
  const Origin &composed(const Context *context, const Named &name);
  Origin compose(const Origin &outer, const Origin &inner);
  const Origin &outerOf(const Context &context, const Named &name);
  TextId nest(TextId outer, TextId inner);
  Origin meet(const Origin &a, const Origin &b);
  TextId commonPrefix(TextId a, TextId b, char separator);

  const Context *contextIn(ir::Operation parent);
  const Context *intern(const Context &context);
  void indexCalls(const ir::OpList &operations);
  void placeFunctions(ir::Operation module);
  Origin originOfCallers(ir::Operation function);

  ir::OpIds ids_;
  std::deque<std::string> storage_;
  std::vector<const std::string *> texts_;
  std::unordered_map<std::string_view, TextId> textIds_;

  std::deque<Named> names_;
  ir::PointerMap<const Named *> namedByLocation_, namedCalls_;
  ir::PointerMap<Path> paths_;
  ir::PointerMap<File> files_;

  std::unordered_set<Context, Hash> contexts_;
  ir::PointerMap<const Context *> contextByParent_;
  std::deque<Origin> origins_;
  std::unordered_map<const Context *, ir::PointerMap<const Origin *>> composed_; // by Named

  std::vector<ir::Operation> functionsInOrder_;
  ir::PointerMap<ir::Operation> callees_; // by call
  std::unordered_map<const void *, std::vector<ir::Operation>> calls_;
};

} // namespace hlotag::analysis
