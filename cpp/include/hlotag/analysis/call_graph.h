// SPDX-License-Identifier: Apache-2.0
//
// Which functions of a module call which?
#pragma once

#include "hlotag/ir/ir.h"

#include <functional>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hlotag::analysis {

/// A snapshot: not updated when the module changes. Functions are the `func.func`s directly in the
/// module. Callers are `func.call`s, composites (their decomposition) and custom calls (their
/// called computations). Nested modules have their own symbols and are left out. Construction is
/// linear in the operations. No function here recurses, so calls may form cycles and long chains.
class CallGraph {
public:
  struct CallSite {
    ir::Operation op;
    size_t caller;
    size_t callee;   ///< `kNoFunction` if the module does not have the function
    size_t position; ///< of `op` in the list of the caller; equal in copies of the caller
    size_t index;    ///< of the callee among those of `op`
  };
  struct Function {
    ir::Operation op;
    std::string_view name;
    bool isPrivate;
    /// Whether an attribute other than a callee refers to the function.
    bool isReferenced = false;
    size_t index = 0;            ///< in the list of the module's operations
    std::vector<size_t> calls;   ///< call sites in its body, in the order of the list
    std::vector<size_t> callers; ///< call sites that call the function

    /// Returns true if the function may run without being called by one of `callers`.
    bool isRoot() const { return !isPrivate || isReferenced || callers.empty(); }
  };
  static constexpr size_t kNoFunction = size_t(-1);

  CallGraph(const ir::OpList &operations, const ir::OpIds &ids);

  const std::vector<Function> &functions() const { return functions_; }
  const std::vector<CallSite> &callSites() const { return callSites_; }
  bool hasCalls() const { return !callSites_.empty(); }

  /// Calls `visit(op, site)` for the call sites in `body`, which is `function` or a copy of it.
  void forEachSite(size_t function, ir::Operation body,
                   const std::function<void(ir::Operation, size_t)> &visit) const;

  /// Returns the index of the function `name`, or `kNoFunction`.
  size_t find(std::string_view name) const;
  /// Returns the index of the function `op`; null for other operations.
  const size_t *find(ir::Operation op) const { return byOp_.find(op.opaque()); }

  /// All functions, callees before callers except in a cycle of calls.
  std::vector<size_t> calleesFirst() const;

private:
  void addBody(size_t function, const ir::OpList &operations, const ir::OpIds &ids);
  void addCalls(const CallSite &site, ir::Attribute callees);
  /// `calleeAttr` (may be null) is skipped: it holds callees, not references.
  void addReferences(ir::Operation op, ir::Identifier calleeAttr = {});
  size_t resolve(ir::Attribute symbol);

  std::vector<Function> functions_;
  std::vector<CallSite> callSites_;
  std::unordered_map<std::string_view, size_t> byName_;
  ir::PointerMap<size_t> byOp_;
  ir::PointerMap<size_t> bySymbol_; // by symbol reference, which MLIR uniques
};

/// Returns the nodes from 0 to `size`, each after its successors, except round a cycle. `next`
/// returns the successor of a node at a position, the node itself to pass over the position, or
/// nothing at the end. Not recursive: a chain may be as long as the program.
std::vector<size_t>
successorsFirst(size_t size,
                const std::function<std::optional<size_t>(size_t node, size_t position)> &next);

} // namespace hlotag::analysis
