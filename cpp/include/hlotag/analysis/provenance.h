// SPDX-License-Identifier: Apache-2.0
//
// Which scopes, phase and source line does an operation come from?
#pragma once

#include "hlotag/analysis/call_graph.h"
#include "hlotag/analysis/paths.h"
#include "hlotag/ir/ir.h"

#include <cstdint>
#include <deque>
#include <vector>

namespace hlotag::analysis {

/// The origin of an operation. Operations with equal origins share one object.
struct Origin {
  /// Scopes, outermost first, callers' scopes included: `decoder/layer_3/attention`. Transforms are
  /// unwrapped. `jit(...)`, `checkpoint`, `rematted_computation`, `closed_call` and `eval_jaxpr`
  /// are left out, and JAX's `while/body` and `cond/branch_1_fun`.
  PathId scope = 0;
  PathId localScope = 0;       ///< without the scopes of callers
  ir::FileLoc source;          ///< innermost line of user code, or null
  bool differentiated = false; ///< under jvp
  bool transposed = false;     ///< belongs to a backward pass
  int numTransposes = 0;       ///< around it, those of its callers too
  int order = 0;               ///< of the derivative, as its name says
  bool rematted = false;       ///< a forward operation that jax.checkpoint recomputes
};

/// The origins of the operations of one module. Parses each distinct pair of location and caller
/// once; the cost per operation is two or three hash look-ups. The module's locations, functions
/// and calls must not change meanwhile; attributes may.
///
/// Names inside a function are relative to its callers. A function with several callers has the
/// common prefix of their scopes, and is transposed or rematted only if all its calls are. So an
/// origin is true for every call.
class Provenance {
public:
  /// `calls` must live as long.
  Provenance(const ir::OpIds &ids, const CallGraph &calls);
  Provenance(const Provenance &) = delete;
  Provenance &operator=(const Provenance &) = delete;

  const Origin &of(ir::Operation op) { return of(op, op.parent()); }
  /// As `of(op)`, for an operation in a region of `parent`.
  const Origin &of(ir::Operation op, ir::Operation parent);

  /// The origin of all calls of a function, which is in that of each operation in it.
  const Origin &ofCallers(size_t function) {
    return *contextIn(calls_.functions()[function].op).base;
  }

  /// Scopes. They are valid as long as this object.
  const Paths &paths() const { return paths_; }

  const CallGraph &calls() const { return calls_; }

private:
  /// The origin in a location, without the callers and regions around it.
  struct Named {
    Origin origin;
    PathId head = 0; ///< the first element
  };
  /// The names and source in a location.
  struct Parts {
    std::vector<ir::Identifier> names; ///< innermost first
    ir::FileLoc source;                ///< innermost position, or null
  };
  /// The surroundings of an operation: the callers of its function and the operation around it.
  struct Context {
    const Origin *base = nullptr;   ///< origin for names that continue the region's name
    const Origin *region = nullptr; ///< origin for other names
    PathId regionHead = 0;          ///< head of the region's name; 0: directly in the function
    /// Whether the surroundings add nothing to a location.
    bool isNothing() const {
      return !regionHead && !base->scope && !base->localScope && !base->differentiated &&
             !base->transposed && !base->numTransposes && !base->order && !base->rematted;
    }
  };

  const Named &named(ir::Location loc, bool isCall = false);
  Named parse(ir::Location loc, bool isCall);
  Parts read(ir::Location loc);
  Named parseNames(const std::vector<ir::Identifier> &names, bool isCall);
  const Origin &findComposed(const Context &context, const Named &name);
  Origin compose(const Origin &outer, const Origin &inner);
  const Origin &outerOf(const Context &context, const Named &name);
  Origin meet(const Origin &a, const Origin &b);

  Context contextIn(ir::Operation parent);
  Origin originOfCallers(size_t function);

  ir::OpIds ids_;
  const CallGraph &calls_;
  Paths paths_;

  std::deque<Named> names_;
  ir::PointerMap<const Named *> namedByLocation_, namedCalls_;
  ir::PointerMap<Named> namedByName_;

  ir::PointerMap<Context> contextByParent_;
  std::deque<Origin> origins_;
  ir::PointerPairMap<const Origin *> composed_; // by outer origin and Named
};

} // namespace hlotag::analysis
