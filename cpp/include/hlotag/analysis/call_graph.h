// SPDX-License-Identifier: Apache-2.0
//
// Who calls whom among the functions of a module.
#pragma once

#include "hlotag/ir/ir.h"

#include <string_view>
#include <unordered_map>
#include <vector>

namespace hlotag::analysis {

/// A snapshot: not updated when the module changes. Functions are the `func.func`s directly in the
/// module and calls the `func.call`s in them; nested modules have symbols of their own and are left
/// out. Building it is linear in the operations, and nothing here recurses, so cycles and long
/// chains of calls do no harm.
class CallGraph {
public:
  struct CallSite {
    ir::Operation op;
    size_t caller;
    size_t callee; ///< `kNone` if the module has no such function
  };
  struct Function {
    ir::Operation op;
    std::string_view name;
    bool isPrivate;
    /// Something other than a `func.call` refers to it, e.g. a custom call's called computation.
    bool isReferenced = false;
    std::vector<size_t> calls;   ///< call sites in its body, in the order of ir::walk
    std::vector<size_t> callers; ///< call sites that call it
  };
  static constexpr size_t kNone = size_t(-1);

  CallGraph(ir::Operation module, const ir::OpIds &ids);

  const std::vector<Function> &functions() const { return functions_; }
  const std::vector<CallSite> &callSites() const { return callSites_; }
  bool hasCalls() const { return !callSites_.empty(); }

  /// The number of the function of that name, or `kNone`.
  size_t find(std::string_view name) const;

  /// All functions, callees before callers; on a cycle some caller comes first.
  std::vector<size_t> calleesFirst() const;

private:
  void addBody(size_t function, const ir::OpIds &ids);
  void addReferences(ir::Operation op);
  size_t resolve(ir::Attribute symbol);
  bool mayRefer(ir::Identifier opName, const ir::OpIds &ids);

  std::vector<Function> functions_;
  std::vector<CallSite> callSites_;
  std::unordered_map<std::string_view, size_t> byName_;
  ir::PointerMap<size_t> bySymbol_; // what a symbol reference, uniqued, stands for
  ir::PointerMap<bool> mayRefer_;
};

} // namespace hlotag::analysis
