// SPDX-License-Identifier: Apache-2.0
#include "hlotag/analysis/provenance.h"

#include "hlotag/analysis/name_path.h"

#include <algorithm>

namespace hlotag::analysis {

using namespace ir;

Provenance::Provenance(const OpIds &ids, const CallGraph &calls) : ids_(ids), calls_(calls) {
  *contextByParent_.insert(nullptr).first = {&origins_.emplace_back()}; // around the module
  std::vector<size_t> order = calls_.calleesFirst();
  for (auto f = order.rbegin(); f != order.rend(); ++f) {
    const Origin *origin = &origins_.emplace_back(originOfCallers(*f));
    *contextByParent_.insert(calls_.functions()[*f].op.opaque()).first = {origin};
  }
}

const Origin &Provenance::of(Operation op, Operation parent) {
  return findComposed(contextIn(parent), named(op.location(), op.name() == ids_.funcCall));
}

// --- Locations -----------------------------------------------------------------------------------

/// Returns the position of a frame, or null. A frame is `"function"("file":3:4 to :9)`, a scope
/// without a traceback `"scope"("file":3:4)`. They differ in the range only.
static FileLoc frameOf(Location loc) {
  NameLoc name = dynCast<NameLoc>(loc);
  FileLoc position = dynCast<FileLoc>(name ? name.child() : loc);
  return name && position && !position.isRange() ? FileLoc() : position;
}

const Provenance::Named &Provenance::named(Location loc, bool isCall) {
  PointerMap<const Named *> &names = isCall ? namedCalls_ : namedByLocation_;
  if (const Named **known = names.find(loc.opaque()))
    return **known;
  const Named *result = &names_.emplace_back(parse(loc, isCall));
  *names.insert(loc.opaque()).first = result;
  return *result;
}

Provenance::Parts Provenance::read(Location loc) {
  Parts parts;
  std::vector<Location> pending{loc};
  PointerMap<bool> calls; // Parts that several call sites share are read once.
  while (!pending.empty()) {
    Location at = pending.back();
    pending.pop_back();
    NameLoc name = dynCast<NameLoc>(at);
    bool isStackOfOne = name && at != loc && frameOf(name);
    if (name) {
      // `"mul:"("jit(f)/mul"(...))` is a hint for profilers: the primitive's name, repeated.
      std::string_view text = name.name().str();
      bool isHint = !text.empty() && text.back() == ':' && dynCast<NameLoc>(name.child());
      if (!isHint && !isStackOfOne)
        parts.names.push_back(name.name());
      pending.push_back(name.child());
    } else if (FileLoc position = dynCast<FileLoc>(at)) {
      parts.source = parts.source ? parts.source : position;
    } else if (CallSiteLoc call = dynCast<CallSiteLoc>(at)) {
      // In a traceback, the callers are frames too. Other call sites come from inlining.
      if (FileLoc frame = frameOf(call.callee())) {
        parts.source = parts.source ? parts.source : frame;
        break;
      }
      if (!calls.insert(call.opaque()).second)
        continue;
      pending.push_back(call.caller());
      pending.push_back(call.callee());
    } else if (FusedLoc fused = dynCast<FusedLoc>(at)) {
      // The first part with a name stands for all.
      std::vector<Location> fusedParts = fused.parts();
      auto isNamed = [](Location part) { return bool(dynCast<NameLoc>(part)); };
      auto first = std::find_if(fusedParts.begin(), fusedParts.end(), isNamed);
      if (!fusedParts.empty())
        pending.push_back(first == fusedParts.end() ? fusedParts.front() : *first);
    }
  }
  return parts;
}

Provenance::Named Provenance::parse(Location loc, bool isCall) {
  Parts parts = read(loc);
  Named result;
  if (isCall || parts.names.size() != 1) {
    result = parseNames(parts.names, isCall);
  } else { // Parsed once per name, because equations on several lines share names.
    auto [named, isNew] = namedByName_.insert(parts.names[0].opaque());
    if (isNew)
      *named = parseNames(parts.names, isCall);
    result = *named;
  }
  result.origin.source = parts.source;
  return result;
}

Provenance::Named Provenance::parseNames(const std::vector<Identifier> &names, bool isCall) {
  std::string joined;
  for (auto name = names.rbegin(); name != names.rend(); ++name)
    joined.append(joined.empty() ? "" : "/").append(name->str());
  // JAX names the call of a cached lowering by scopes alone.
  if (isCall && names.size() == 1 && !endsInCall(joined))
    joined += '/';
  NamePath path = analysis::parseName(joined);
  Named result;
  result.head = paths_.append(0, path.head);
  Origin &origin = result.origin;
  for (const std::string &scope : path.scopes)
    origin.scope = paths_.append(origin.scope, scope);
  origin.localScope = origin.scope;
  origin.differentiated = path.isDifferentiated();
  origin.transposed = path.isTransposed();
  origin.numTransposes = path.numTransposes();
  origin.order = path.order;
  origin.rematted = path.rematted;
  return result;
}

// --- Composition ---------------------------------------------------------------------------------

const Origin &Provenance::findComposed(const Context &context, const Named &name) {
  if (context.isNothing())
    return name.origin;
  const Origin &outer = outerOf(context, name);
  auto [origin, isNew] = composed_.insert({&outer, &name});
  if (isNew)
    *origin = &origins_.emplace_back(compose(outer, name.origin));
  return **origin;
}

/// Returns the origin that a name is relative to. Inside `while` and `cond`, JAX writes the whole
/// name; inside shard_map, only the part from the shard_map on.
const Origin &Provenance::outerOf(const Context &context, const Named &name) {
  bool continues = !context.regionHead || name.head == context.regionHead;
  return continues ? *context.base : *context.region;
}

Origin Provenance::compose(const Origin &outer, const Origin &inner) {
  Origin result = inner;
  result.scope = paths_.nest(outer.scope, inner.scope);
  result.localScope = paths_.nest(outer.localScope, inner.localScope);
  result.differentiated |= outer.differentiated;
  result.transposed |= outer.transposed;
  result.numTransposes += outer.numTransposes;
  result.order = std::max(result.order, outer.order);
  result.rematted |= outer.rematted;
  return result;
}

Origin Provenance::meet(const Origin &a, const Origin &b) {
  Origin result = a;
  result.scope = paths_.commonPrefix(a.scope, b.scope);
  // In both phases it is in none.
  result.differentiated = a.differentiated && b.differentiated && a.transposed == b.transposed;
  result.transposed = a.transposed && b.transposed;
  result.numTransposes = std::min(a.numTransposes, b.numTransposes);
  result.order = std::max(a.order, b.order);
  result.rematted = a.rematted && b.rematted;
  return result;
}

// --- Functions and regions -----------------------------------------------------------------------

Provenance::Context Provenance::contextIn(Operation parent) {
  // Up to a known context, then down again: regions may be nested too deep for recursion.
  std::vector<Operation> unknown;
  const Context *known = nullptr;
  for (; !(known = contextByParent_.find(parent.opaque())); parent = parent.parent())
    unknown.push_back(parent);
  Context context = *known;
  for (; !unknown.empty(); unknown.pop_back()) {
    Operation op = unknown.back();
    if (op.name() != ids_.module && op.name() != ids_.func) {
      const Named &name = named(op.location());
      context = {&outerOf(context, name), &findComposed(context, name), name.head};
    }
    *contextByParent_.insert(op.opaque()).first = context;
  }
  return context;
}

/// Names in the computations of custom calls are complete without the caller.
Origin Provenance::originOfCallers(size_t function) {
  Origin result;
  bool isFirst = true;
  for (size_t site : calls_.functions()[function].callers) {
    Operation call = calls_.callSites()[site].op;
    if (call.name() == ids_.customCall)
      continue;
    Origin origin = of(call);
    origin.localScope = 0;
    origin.source = FileLoc();
    result = isFirst ? origin : meet(result, origin);
    isFirst = false;
  }
  return result;
}

} // namespace hlotag::analysis
