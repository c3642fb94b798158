// SPDX-License-Identifier: Apache-2.0
#include "hlotag/analysis/provenance.h"

#include "hlotag/analysis/name_path.h"

#include <algorithm>
#include <map>

namespace hlotag::analysis {

using namespace ir;

Provenance::Provenance(const OpList &operations) : ids_(operations[0].op.context()) {
  intern(std::string_view());
  indexCalls(operations);
  placeFunctions(operations[0].op);
}

TextId Provenance::intern(std::string_view text) {
  auto found = textIds_.find(text);
  if (found != textIds_.end())
    return found->second;
  TextId id = TextId(texts_.size());
  texts_.push_back(&storage_.emplace_back(text));
  textIds_.emplace(*texts_.back(), id);
  return id;
}

Operation Provenance::calleeOf(Operation call) const {
  const Operation *callee = callees_.find(call.opaque());
  return callee ? *callee : Operation();
}

const std::vector<Operation> &Provenance::callsOf(Operation function) const {
  static const std::vector<Operation> none;
  auto found = calls_.find(function.opaque());
  return found == calls_.end() ? none : found->second;
}

const Origin &Provenance::of(Operation op, Operation parent) {
  return composed(contextIn(parent), named(op.location(), op.name() == ids_.funcCall));
}

// --- Locations -----------------------------------------------------------------------------------

const Provenance::File &Provenance::file(FileLoc loc) {
  auto [file, isNew] = files_.insert(loc.opaque());
  if (isNew)
    *file = {uint32_t(files_.size()), loc.str().find(" to ") != std::string::npos};
  return *file;
}

/// A frame is `"function"("file":3:4 to :9)`, a scope without a traceback `"scope"("file":3:4)`.
/// They differ in the range only.
bool Provenance::isFrame(NameLoc name) {
  FileLoc position = dynCast<FileLoc>(name.child());
  return position && file(position).isRange;
}

const Provenance::Named &Provenance::named(Location loc, bool isCall) {
  PointerMap<const Named *> &names = isCall ? namedCalls_ : namedByLocation_;
  if (const Named **known = names.find(loc.opaque()))
    return **known;
  const Named *result = &names_.emplace_back(parse(loc, isCall));
  *names.insert(loc.opaque()).first = result;
  return *result;
}

/// Returns whether `call` is part of a traceback. Other call sites come from inlining.
bool Provenance::isTraceback(CallSiteLoc call) {
  NameLoc callee = dynCast<NameLoc>(call.callee());
  return callee ? isFrame(callee) : bool(dynCast<FileLoc>(call.callee()));
}

Provenance::Parts Provenance::read(Location loc) {
  Parts parts;
  std::vector<Location> pending{loc};
  while (!pending.empty()) {
    Location at = pending.back();
    pending.pop_back();
    NameLoc name = dynCast<NameLoc>(at);
    bool isStackOfOne = name && at != loc && isFrame(name);
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
      if (isTraceback(call)) {
        parts.source = parts.source ? parts.source : findFile(call.callee());
        break; // The callers are frames too.
      }
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
  bool isShared = !isCall && parts.names.size() == 1;
  Named result = isShared ? parseName(parts.names[0]) : parseNames(parts.names, isCall);
  if (parts.source) {
    result.origin.source = parts.source;
    result.origin.sourceKey = file(parts.source).key;
  }
  return result;
}

/// Parsed once per name, because equations on several lines share names.
const Provenance::Named &Provenance::parseName(Identifier name) {
  auto [named, isNew] = namedByName_.insert(name.opaque());
  if (isNew)
    *named = parseNames({name}, /*isCall=*/false);
  return *named;
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
  result.head = intern(path.head);
  Origin &origin = result.origin;
  origin.scope = origin.localScope = intern(path.scope());
  origin.transforms = intern(path.transforms);
  origin.primitive = intern(path.primitive);
  origin.transposed = path.isTransposed();
  origin.checkpointed = path.checkpointed;
  origin.rematted = path.rematted;
  return result;
}

// --- Composition ---------------------------------------------------------------------------------

const Origin &Provenance::composed(const Context *context, const Named &name) {
  if (context->isNothing())
    return name.origin;
  auto [origin, isNew] = composed_[context].insert(&name);
  if (isNew)
    *origin = &origins_.emplace_back(compose(outerOf(*context, name), name.origin));
  return **origin;
}

/// Returns the origin that a name is relative to. Inside `while` and `cond`, JAX writes the whole
/// name; inside shard_map, only the part from the shard_map on.
const Origin &Provenance::outerOf(const Context &context, const Named &name) {
  bool continues = !context.regionHead || name.head == context.regionHead;
  return continues ? *context.base : *context.region;
}

TextId Provenance::nest(TextId outer, TextId inner) {
  if (!outer || !inner)
    return outer + inner;
  return intern(std::string(text(outer)) + '/' + std::string(text(inner)));
}

Origin Provenance::compose(const Origin &outer, const Origin &inner) {
  Origin result = inner;
  result.scope = nest(outer.scope, inner.scope);
  result.localScope = nest(outer.localScope, inner.localScope);
  if (outer.transforms)
    result.transforms =
        intern(std::string(text(outer.transforms)) + std::string(text(inner.transforms)));
  result.transposed |= outer.transposed;
  result.checkpointed |= outer.checkpointed;
  result.rematted |= outer.rematted;
  return result;
}

TextId Provenance::commonPrefix(TextId a, TextId b, char separator) {
  if (a == b)
    return a;
  std::string_view first = text(a), second = text(b);
  size_t length = 0, end = 0;
  auto isEnd = [&](std::string_view s, size_t at) {
    return !separator || at == s.size() || s[at] == separator;
  };
  while (true) {
    if (isEnd(first, length) && isEnd(second, length))
      end = length;
    if (length == first.size() || length == second.size() || first[length] != second[length])
      return intern(first.substr(0, end));
    ++length;
  }
}

Origin Provenance::meet(const Origin &a, const Origin &b) {
  Origin result = a;
  result.scope = commonPrefix(a.scope, b.scope, '/');
  result.transforms = commonPrefix(a.transforms, b.transforms, '\0');
  result.transposed = a.transposed && b.transposed;
  result.checkpointed = a.checkpointed && b.checkpointed;
  result.rematted = a.rematted && b.rematted;
  return result;
}

// --- Functions and regions -----------------------------------------------------------------------

const Provenance::Context *Provenance::intern(const Context &context) {
  return &*contexts_.insert(context).first;
}

const Provenance::Context *Provenance::contextIn(Operation parent) {
  // Up to a known context, then down again: regions may be nested too deep for recursion.
  std::vector<Operation> unknown;
  const Context *context = nullptr;
  for (; parent; parent = parent.parent()) {
    if (const Context **known = contextByParent_.find(parent.opaque())) {
      context = *known;
      break;
    }
    unknown.push_back(parent);
  }
  if (!context)
    context = intern(Context{&origins_.emplace_back(), nullptr, 0});
  while (!unknown.empty()) {
    Operation op = unknown.back();
    unknown.pop_back();
    if (op.name() != ids_.module && op.name() != ids_.func) {
      const Named &name = named(op.location());
      const Origin *region = &composed(context, name);
      const Origin *base = &outerOf(*context, name);
      context = intern(Context{base, region, name.head});
    }
    *contextByParent_.insert(op.opaque()).first = context;
  }
  return context;
}

void Provenance::indexCalls(const OpList &operations) {
  struct Call {
    Operation op;
    std::pair<size_t, std::string_view> callee;
  };
  std::map<std::pair<size_t, std::string_view>, Operation> functions; // by module and symbol
  std::vector<Call> calls;
  std::vector<size_t> modules; // around the operation
  for (size_t i = 0; i < operations.size(); ++i) {
    while (!modules.empty() && operations.after(modules.back()) <= i)
      modules.pop_back();
    auto [op, name, numNested, hasRegions] = operations[i];
    if (name == ids_.module || modules.empty())
      modules.push_back(i);
    if (name == ids_.func) {
      if (StringAttr symbol = op.attrOf<StringAttr>("sym_name"))
        functions.emplace(std::pair(modules.back(), symbol.value()), op);
      functionsInOrder_.push_back(op);
    }
    // Names in the computations of custom calls are complete without the caller.
    Identifier attribute = ids_.calleesOf(name);
    if (auto callee =
            attribute ? op.attrOf<FlatSymbolRefAttr>(attribute.str()) : FlatSymbolRefAttr())
      calls.push_back({op, {modules.back(), callee.value()}});
  }
  for (const Call &call : calls)
    if (auto callee = functions.find(call.callee); callee != functions.end()) {
      *callees_.insert(call.op.opaque()).first = callee->second;
      calls_[callee->second.opaque()].push_back(call.op);
    }
}

/// Gives each function its context, callers before callees. Iterative, because chains of calls may
/// be long. Functions in a cycle of calls, which HLO cannot have, get no context.
void Provenance::placeFunctions(Operation module) {
  *contextByParent_.insert(module.opaque()).first =
      intern(Context{&origins_.emplace_back(), nullptr, 0});
  std::unordered_map<const void *, std::vector<Operation>> callees;
  std::unordered_map<const void *, size_t> callsLeft;
  for (Operation function : functionsInOrder_) {
    for (Operation call : callsOf(function)) {
      Operation caller = call;
      while (caller && caller.name() != ids_.func)
        caller = caller.parent();
      if (!caller || caller == function)
        continue;
      callees[caller.opaque()].push_back(function);
      ++callsLeft[function.opaque()];
    }
  }
  std::vector<Operation> ready;
  for (Operation function : functionsInOrder_)
    if (!callsLeft[function.opaque()])
      ready.push_back(function);
  while (!ready.empty()) {
    Operation function = ready.back();
    ready.pop_back();
    const Origin *origin = &origins_.emplace_back(originOfCallers(function));
    *contextByParent_.insert(function.opaque()).first = intern(Context{origin, nullptr, 0});
    for (Operation callee : callees[function.opaque()])
      if (--callsLeft[callee.opaque()] == 0)
        ready.push_back(callee);
  }
}

Origin Provenance::originOfCallers(Operation function) {
  Origin result;
  bool isFirst = true;
  for (Operation call : callsOf(function)) {
    Origin origin = of(call);
    origin.primitive = origin.localScope = 0;
    origin.source = FileLoc();
    origin.sourceKey = 0;
    result = isFirst ? origin : meet(result, origin);
    isFirst = false;
  }
  return result;
}

} // namespace hlotag::analysis
