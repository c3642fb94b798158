// SPDX-License-Identifier: Apache-2.0
#include "hlotag/analysis/call_graph.h"

#include "hlotag/ir/keys.h"

#include <utility>

namespace hlotag::analysis {

using ir::Attribute;
using ir::Identifier;
using ir::Operation;

CallGraph::CallGraph(const ir::OpList &operations, const ir::OpIds &ids) {
  std::vector<size_t> others;
  for (size_t i = 1; i < operations.size(); i = operations.after(i)) {
    Operation op = operations[i].op;
    bool isFunction = operations[i].name == ids.func;
    auto name = isFunction ? op.attrOf<ir::StringAttr>("sym_name") : ir::StringAttr();
    if (!name) {
      others.push_back(i);
      continue;
    }
    auto visibility = op.attrOf<ir::StringAttr>("sym_visibility");
    byName_.emplace(name.value(), functions_.size());
    *byOp_.insert(op.opaque()).first = functions_.size();
    functions_.push_back({op, name.value(), visibility && visibility.value() == "private"});
    functions_.back().index = i;
  }
  addReferences(operations[0].op);
  for (size_t f = 0; f < functions_.size(); ++f) {
    addReferences(functions_[f].op);
    addBody(f, operations, ids);
  }
  // A nested module resolves names among its own symbols.
  for (size_t other : others)
    for (size_t i = other; i < operations.after(other); i = operations.next(i, ids.module))
      if (operations[i].name != ids.module)
        addReferences(operations[i].op);
}

void CallGraph::addBody(size_t function, const ir::OpList &operations, const ir::OpIds &ids) {
  size_t start = functions_[function].index;
  for (size_t i = start, end = operations.after(start); i < end;
       i = operations.next(i, ids.module)) {
    Operation op = operations[i].op;
    Identifier name = operations[i].name;
    if (name == ids.module)
      continue;
    auto [facts, callees] = ids.rowOf(name);
    if (callees)
      addCalls({op, function, kNoFunction, i - start, 0}, op.attr(callees.str()));
    if (facts & ir::kRefers) // Reading all attributes is slow.
      addReferences(op, callees);
  }
}

void CallGraph::addCalls(const CallSite &site, Attribute callees) {
  auto add = [&](Attribute symbol, size_t index) {
    CallSite added = site;
    added.callee = resolve(symbol);
    added.index = index;
    functions_[site.caller].calls.push_back(callSites_.size());
    if (added.callee != kNoFunction)
      functions_[added.callee].callers.push_back(callSites_.size());
    callSites_.push_back(added);
  };
  ir::ArrayAttr list = ir::dynCast<ir::ArrayAttr>(callees);
  if (!list)
    return add(callees, 0);
  for (intptr_t i = 0; i < list.size(); ++i)
    add(list[i], size_t(i));
}

void CallGraph::addReferences(Operation op, Identifier calleeAttr) {
  std::vector<Attribute> pending;
  for (ir::NamedAttribute entry : op.attributes())
    if (entry.name != calleeAttr && !ir::startsWith(entry.name.str(), ir::kReservedPrefix))
      pending.push_back(entry.value);
  while (!pending.empty()) {
    Attribute attr = pending.back();
    pending.pop_back();
    if (ir::isa<ir::FlatSymbolRefAttr>(attr)) {
      if (size_t function = resolve(attr); function != kNoFunction)
        functions_[function].isReferenced = true;
    } else if (ir::ArrayAttr array = ir::dynCast<ir::ArrayAttr>(attr)) {
      for (Attribute element : array)
        pending.push_back(element);
    } else if (ir::DictionaryAttr entries = ir::dynCast<ir::DictionaryAttr>(attr)) {
      for (ir::NamedAttribute entry : entries)
        pending.push_back(entry.value);
    }
  }
}

size_t CallGraph::resolve(Attribute symbol) {
  if (!ir::isa<ir::FlatSymbolRefAttr>(symbol))
    return kNoFunction;
  auto [known, isNew] = bySymbol_.insert(symbol.opaque());
  if (isNew)
    *known = find(ir::FlatSymbolRefAttr(symbol.raw()).value());
  return *known;
}

void CallGraph::forEachSite(size_t function, Operation body,
                            const std::function<void(Operation, size_t)> &visit) const {
  const std::vector<size_t> &sites = functions_[function].calls;
  if (body == functions_[function].op) {
    for (size_t site : sites)
      visit(callSites_[site].op, site);
    return;
  }
  if (sites.empty())
    return;
  ir::OpList copy(body);
  for (size_t site : sites)
    visit(copy[callSites_[site].position].op, site);
}

size_t CallGraph::find(std::string_view name) const {
  auto found = byName_.find(name);
  return found == byName_.end() ? kNoFunction : found->second;
}

std::vector<size_t> CallGraph::calleesFirst() const {
  return successorsFirst(functions_.size(), [&](size_t f, size_t call) -> std::optional<size_t> {
    if (call == functions_[f].calls.size())
      return {};
    size_t callee = callSites_[functions_[f].calls[call]].callee;
    return callee == kNoFunction ? f : callee;
  });
}

std::vector<size_t>
successorsFirst(size_t size,
                const std::function<std::optional<size_t>(size_t node, size_t position)> &next) {
  std::vector<size_t> order;
  std::vector<bool> isSeen(size);
  std::vector<std::pair<size_t, size_t>> stack; // nodes and positions
  auto enter = [&](size_t node) {
    if (!isSeen[node])
      stack.emplace_back(node, 0);
    isSeen[node] = true;
  };
  for (size_t root = 0; root < size; ++root) {
    enter(root);
    while (!stack.empty()) {
      auto &[node, position] = stack.back();
      if (std::optional<size_t> successor = next(node, position++)) {
        enter(*successor);
      } else {
        order.push_back(node);
        stack.pop_back();
      }
    }
  }
  return order;
}

} // namespace hlotag::analysis
