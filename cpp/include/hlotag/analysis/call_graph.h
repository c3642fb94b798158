// SPDX-License-Identifier: Apache-2.0
//
// Who calls whom among the functions of a module.
#pragma once

#include "hlotag/ir/ir.h"

#include <functional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hlotag::analysis {

/// A snapshot: not updated when the module changes. Functions are the `func.func`s directly in the
/// module; what calls them are `func.call`s, composites (their decomposition) and custom calls
/// (their called computations). Nested modules have symbols of their own and are left out. Building
/// it is linear in the operations, and nothing here recurses, so cycles and long chains of calls do
/// no harm.
class CallGraph {
public:
  struct CallSite {
    ir::Operation op;
    size_t caller;
    size_t callee; ///< `kNone` if the module has no such function
    size_t place;  ///< the number of `op` in a walk over the caller: in a copy it is the same
    size_t index;  ///< of the symbol, in an operation that calls several functions
  };
  struct Function {
    ir::Operation op;
    std::string_view name;
    bool isPrivate;
    /// Something other than a call refers to it.
    bool isReferenced = false;
    std::vector<size_t> calls;   ///< call sites in its body, in the order of ir::walk
    std::vector<size_t> callers; ///< call sites that call it
  };
  static constexpr size_t kNone = size_t(-1);

  CallGraph(const ir::OpList &operations, const ir::OpIds &ids);

  const std::vector<Function> &functions() const { return functions_; }
  const std::vector<CallSite> &callSites() const { return callSites_; }
  bool hasCalls() const { return !callSites_.empty(); }

  /// Calls `visit(op, site)` for the call sites in `body`, which is that function or a copy of it.
  void forEachSite(size_t function, ir::Operation body,
                   const std::function<void(ir::Operation, size_t)> &visit) const;

  /// The number of the function of that name, or `kNone`.
  size_t find(std::string_view name) const;

  /// All functions, callees before callers; on a cycle some caller comes first.
  std::vector<size_t> calleesFirst() const;

private:
  void addBody(size_t function, const ir::OpList &operations, size_t start, const ir::OpIds &ids);
  void addCalls(const CallSite &site, ir::Attribute callees);
  /// `calls`: the attribute that is none, for it says what `op` calls; or null.
  void addReferences(ir::Operation op, ir::Identifier calls = {});
  size_t resolve(ir::Attribute symbol);
  /// What an operation's name says of its attributes.
  struct Kind {
    ir::Identifier calls;  ///< the attribute with what it calls; null if it calls nothing
    bool mayRefer = false; ///< others may have symbols
  };
  /// Valid until asked for another name.
  const Kind &kindOf(ir::Identifier opName, const ir::OpIds &ids);

  ir::Identifier module_;
  std::vector<Function> functions_;
  std::vector<CallSite> callSites_;
  std::unordered_map<std::string_view, size_t> byName_;
  ir::PointerMap<size_t> bySymbol_; // what a symbol reference, uniqued, stands for
  ir::PointerMap<Kind> kinds_;      // by name
};

} // namespace hlotag::analysis
