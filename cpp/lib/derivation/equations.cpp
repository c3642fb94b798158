// SPDX-License-Identifier: Apache-2.0
#include "equations.h"

#include "../analysis/primitives.h"

#include <algorithm>

namespace hlotag::derivation {

using namespace ir;
using analysis::CallGraph;
using analysis::Origin;

namespace {

constexpr size_t kMaxDepth = 256; // of nested calls and regions
constexpr size_t kMaxInlined = 8; // limit of visited operations, as a multiple of the module's

uint64_t bits(const void *pointer) { return uint64_t(reinterpret_cast<uintptr_t>(pointer)); }

} // namespace

Equations::Equations(const OpList &operations, analysis::Provenance &provenance, const Table &table)
    : provenance_(provenance), table_(table), ids_(operations[0].op.context()),
      numLeft_(operations.size() * kMaxInlined) {
  MlirContext context = operations[0].op.context();
  auto id = [&](std::string_view name) { return Identifier::get(context, name); };
  barrier_ = id("stablehlo.optimization_barrier");
  manual_ = id("sdy.manual_computation");
  dynamicSlice_ = id("stablehlo.dynamic_slice");
  dynamicUpdate_ = id("stablehlo.dynamic_update_slice");
  reshape_ = id("stablehlo.reshape");
  broadcast_ = id("stablehlo.broadcast_in_dim");
  select_ = id("stablehlo.select");
  const CallGraph &calls = provenance.calls();
  auto isInlined = [&](size_t site) {
    return calls.callSites()[site].op.name() != ids_.customCall;
  };
  for (const CallGraph::Function &function : calls.functions()) {
    Block body = function.op.regions()[0].firstBlock();
    if (!body || std::any_of(function.callers.begin(), function.callers.end(), isInlined))
      continue;
    Ids arguments, results;
    // An argument that only a backward pass uses is a cotangent from the caller.
    auto isEmitted = [&](Operation user) { return provenance.isTransposed(user); };
    for (ir::Value argument : body.arguments()) {
      bool isCotangent = isFloat(argument) && !argument.uses().empty();
      for (OpOperand use : argument.uses())
        isCotangent &= isEmitted(use.owner());
      arguments.push_back(newValue(argument, isCotangent));
    }
    runFunction(function.op, arguments, Frame(), results);
  }
  mergeExpanded();
}

ValueId Equations::newValue(ir::Value value, bool isLinear) {
  Value made;
  made.type = value.type().ptr;
  made.isLinear = isLinear;
  made.isFloat = isFloat(value);
  values.push_back(made);
  return ValueId(values.size() - 1);
}

ValueId Equations::numberOf(const std::vector<uint64_t> &key, ir::Value value) {
  auto [known, isNew] = known_.emplace(key, kNone);
  if (isNew)
    known->second = newValue(value);
  return known->second;
}

bool Equations::isFloat(ir::Value value) {
  auto [known, isNew] = floats_.insert(value.type().ptr);
  if (isNew) {
    const capi::Table &mlir = capi::fn();
    MlirType type = value.type();
    if (mlir.mlirTypeIsAShaped(type))
      type = mlir.mlirShapedTypeGetElementType(type);
    *known = mlir.mlirTypeIsAFloat(type) || mlir.mlirTypeIsAComplex(type);
  }
  return *known;
}

/// Returns whether an operation belongs to a derivative of a derivative. Transforms are letters,
/// outermost first: `tj` is a transposed tangent, `jj` a tangent of a tangent. `tjj` is of first
/// order under jax.checkpoint, where JAX writes `transpose(jvp(f))/jvp(f)`.
bool Equations::isHigherOrder(const Origin &origin) const {
  std::string transforms(provenance_.text(origin.transforms));
  transforms.erase(std::remove(transforms.begin(), transforms.end(), 'v'), transforms.end());
  bool isCheckpointed = origin.checkpointed || origin.rematted;
  bool isTwice = transforms.size() > 2 || transforms == "jj";
  return isTwice && !(isCheckpointed && transforms == "tjj");
}

/// Returns whether batching followed transposition: `vmap(grad(f))`.
bool Equations::isBatchedAfter(const Origin &origin) const {
  std::string_view transforms = provenance_.text(origin.transforms);
  return transforms.find('v') < transforms.find('t');
}

PlaceId Equations::placeOf(PlaceId outer, const Origin &origin) {
  uint64_t local = uint64_t(origin.localScope) << 32 | origin.sourceKey;
  auto [number, isNewLocal] = localPlaces_.insert(local);
  if (isNewLocal)
    *number = uint32_t(localPlaces_.size());
  auto [place, isNew] = places_.insert(uint64_t(outer) << 32 | *number);
  if (isNew)
    *place = uint32_t(places_.size());
  return *place;
}

/// Inside a branch, replaces the result of an earlier conditional with the same predicate by the
/// value that its branch yielded.
ValueId Equations::chosen(ValueId value, const Frame &frame) const {
  for (auto found = branches_.find(value); found != branches_.end();
       found = branches_.find(value)) {
    const auto &[predicate, yields] = found->second;
    auto in = std::find_if(frame.branches.rbegin(), frame.branches.rend(),
                           [&, p = predicate](const auto &branch) { return branch.first == p; });
    if (in == frame.branches.rend() || in->second >= yields.size())
      break;
    value = yields[in->second];
  }
  return value;
}

/// Binds the block's arguments to `numbers`; the arguments beyond them get new numbers.
void Equations::bind(Block block, const Ids &numbers, Frame &frame) {
  for (ir::Value argument : block.arguments()) {
    auto i = size_t(argument.number());
    *frame.numbers.insert(argument.opaque()).first =
        i < numbers.size() ? numbers[i] : newValue(argument);
  }
}

void Equations::runFunction(Operation function, const Ids &arguments, Frame frame, Ids &results) {
  frame.numbers = {};
  Block body = function.regions()[0].firstBlock();
  if (!body) // a declaration
    return;
  bind(body, arguments, frame);
  runBlock(body, function, frame, results);
}

void Equations::runBlock(Block block, Operation parent, Frame &frame, Ids &yields) {
  for (Operation op : block.operations()) {
    Identifier name = op.name();
    Ids ins = operandsOf(op, frame);
    if (name == ids_.funcReturn || name == ids_.stablehloReturn || name == ids_.sdyReturn) {
      yields = std::move(ins);
      return;
    }
    if (numLeft_ == 0)
      return;
    --numLeft_;
    if (name == barrier_ && ins.size() == size_t(op.results().size()))
      bindResults(op, ins, frame);
    else if (name == ids_.constant && op.results().size() == 1)
      bindResults(op, {numberOfConstant(op)}, frame);
    else
      runOperation(op, ins, provenance_.of(op, parent), frame);
  }
}

Equations::Ids Equations::operandsOf(Operation op, Frame &frame) {
  Ids ins;
  for (ir::Value operand : op.operands()) {
    ValueId *known = frame.numbers.find(operand.opaque());
    ValueId value = known ? *known : newValue(operand);
    if (!known)
      *frame.numbers.insert(operand.opaque()).first = value;
    ins.push_back(frame.branches.empty() ? value : chosen(value, frame));
  }
  return ins;
}

void Equations::bindResults(Operation op, const Ids &outs, Frame &frame) {
  for (ir::Value result : op.results())
    *frame.numbers.insert(result.opaque()).first = outs[size_t(result.number())];
}

ValueId Equations::numberOfConstant(Operation op) {
  ir::Value result = op.results()[0];
  ValueId value = numberOf({bits(op.attr("value").opaque()), bits(result.type().ptr)}, result);
  values[value].isConstant = true;
  return value;
}

void Equations::runOperation(Operation op, const Ids &ins, const Origin &origin, Frame &frame) {
  Identifier name = op.name();
  bool isBranching = (name == ids_.caseOp || name == ids_.ifOp) && ins.size() == 1;
  bool isLoop =
      name == ids_.whileOp && op.regions().size() == 2 && ins.size() == size_t(op.results().size());
  if (name == ids_.funcCall || name == manual_ || isBranching || isLoop) {
    runSite(op, ins, origin, frame);
    return;
  }
  Ids outs = number(op, ins, origin, frame);
  bindResults(op, outs, frame);
  addTo(op, ins, outs, origin, frame);
}

void Equations::runSite(Operation op, const Ids &ins, const Origin &origin, Frame &frame) {
  auto id = SiteId(sites.size());
  Site &site = sites.emplace_back();
  site.op = op;
  site.parent = frame.site;
  site.place = placeOf(frame.place, origin);
  site.sourceKey = origin.sourceKey;
  site.primitive = origin.primitive;
  site.isCopy = isCopy(origin, frame);
  site.isDerived = isInDerived(frame) || origin.transposed;
  site.isBeyondTable = isHigherOrder(origin);
  site.ins = ins;
  if (frame.depth < kMaxDepth && op.name() == ids_.funcCall)
    runCall(op, ins, id, frame);
  else if (frame.depth < kMaxDepth)
    runRegions(op, ins, id, frame);
  Ids &outs = sites[id].outs;
  for (ir::Value result : op.results())
    if (size_t(result.number()) >= outs.size())
      outs.push_back(newValue(result));
  bindResults(op, outs, frame);
}

void Equations::runCall(Operation op, const Ids &ins, SiteId site, const Frame &frame) {
  auto callee = op.attrOf<FlatSymbolRefAttr>("callee");
  size_t function = callee ? provenance_.calls().find(callee.value()) : CallGraph::kNone;
  if (function == CallGraph::kNone)
    return;
  Frame inner;
  inner.place = sites[site].place;
  inner.site = site;
  inner.branches = frame.branches;
  inner.depth = frame.depth + 1;
  Ids outs;
  runFunction(provenance_.calls().functions()[function].op, ins, std::move(inner), outs);
  sites[site].outs = std::move(outs);
}

void Equations::runRegions(Operation op, const Ids &ins, SiteId site, Frame &frame) {
  frame.site = site;
  ++frame.depth;
  if (op.name() == ids_.whileOp) {
    runLoop(op, ins, site, frame);
  } else if (op.name() == manual_) {
    Block body = op.regions()[0].firstBlock();
    bind(body, ins, frame);
    Ids yields;
    runBlock(body, op, frame, yields);
    sites[site].outs = std::move(yields);
  } else {
    runBranches(op, ins, site, frame);
  }
  --frame.depth;
  frame.site = sites[site].parent;
}

/// Returns the value that one iteration writes into the stack `argument`; kNone if `yielded` is no
/// such update.
ValueId Equations::stackedIn(ValueId yielded, ValueId argument) const {
  const Value &update = values[yielded];
  if (update.op != dynamicUpdate_ || update.operands[0] != argument)
    return kNone;
  const Value &slice = values[update.operands[1]];
  bool isShaped = slice.op == broadcast_ || slice.op == reshape_;
  return isShaped ? slice.operands[0] : update.operands[1];
}

void Equations::runLoop(Operation op, const Ids &ins, SiteId site, Frame &frame) {
  Block body = op.regions()[1].firstBlock(), condition = op.regions()[0].firstBlock();
  Operation end = body.terminator();
  bool emits = isInDerived(frame) && !isInCopy(frame);
  Ids arguments;
  for (ir::Value argument : body.arguments()) {
    auto i = size_t(argument.number());
    if (i >= ins.size())
      break;
    bool isInvariant = end && argument.number() < end.operands().size() &&
                       end.operands()[argument.number()] == argument;
    arguments.push_back(isInvariant ? ins[i] : newValue(argument, emits && isFloat(argument)));
    // Slices of one array share a number in all loops.
    if (isInvariant && !values[ins[i]].isLinear && !sliceOf_.count(ins[i]))
      sliceOf_[ins[i]] = newValue(argument);
  }
  Ids yields;
  bind(condition, arguments, frame);
  runBlock(condition, op, frame, yields);
  bind(body, arguments, frame);
  yields.clear();
  runBlock(body, op, frame, yields);
  for (ir::Value result : op.results()) {
    auto i = size_t(result.number());
    if (i >= yields.size() || i >= arguments.size() || arguments[i] == ins[i]) {
      sites[site].outs.push_back(ins[i]);
      continue;
    }
    ValueId value = newValue(result, values[arguments[i]].isLinear || values[yields[i]].isLinear);
    sites[site].outs.push_back(value);
    if (ValueId stacked = stackedIn(yields[i], arguments[i]); stacked != kNone)
      sliceOf_[value] = stacked;
  }
}

void Equations::runBranches(Operation op, const Ids &ins, SiteId site, Frame &frame) {
  std::vector<Ids> yields;
  for (Region region : op.regions()) {
    frame.branches.emplace_back(ins[0], yields.size());
    Ids yielded;
    runBlock(region.firstBlock(), op, frame, yielded);
    yields.push_back(std::move(yielded));
    frame.branches.pop_back();
  }
  for (ir::Value result : op.results()) {
    Ids given;
    bool isLinear = false;
    for (const Ids &yielded : yields) {
      auto i = size_t(result.number());
      given.push_back(i < yielded.size() ? yielded[i] : newValue(result));
      isLinear |= values[given.back()].isLinear;
    }
    ValueId value = newValue(result, isLinear);
    sites[site].outs.push_back(value);
    branches_[value] = {ins[0], std::move(given)};
  }
}

/// Numbers the slice of a stack in one iteration: `dynamic_slice`, then `reshape`. Returns `kNone`
/// for other operations.
ValueId Equations::sliceMadeBy(Operation op, const Ids &ins) {
  if (ins.empty() || op.results().size() != 1)
    return kNone;
  ir::Value result = op.results()[0];
  if (auto stack = sliceOf_.find(ins[0]); op.name() == dynamicSlice_ && stack != sliceOf_.end()) {
    ValueId unshaped = numberOf({0, stack->second}, result);
    sliced_[unshaped] = stack->second;
    return unshaped;
  }
  auto slice = sliced_.find(ins[0]);
  if (op.name() != reshape_ || ins.size() != 1 || slice == sliced_.end())
    return kNone;
  values[slice->second].type = result.type().ptr;
  return slice->second;
}

/// Numbers the results of an operation. Equal operations on equal operands share their results,
/// except for operations on cotangents.
Equations::Ids Equations::number(Operation op, const Ids &ins, const Origin &origin,
                                 const Frame &frame) {
  if (ValueId slice = sliceMadeBy(op, ins); slice != kNone)
    return {slice};
  auto isConstant = [&](ValueId in) { return values[in].isConstant; };
  auto isLinear = [&](ValueId in) { return values[in].isLinear; };
  bool allConstant = std::all_of(ins.begin(), ins.end(), isConstant);
  bool mayBeLinear = std::any_of(ins.begin(), ins.end(), isConstant) ||
                     std::any_of(ins.begin(), ins.end(), isLinear);
  for (ir::Value result : op.results())
    mayBeLinear &= isFloat(result);
  if (!isDerived(origin, frame) || !(mayBeLinear || allConstant))
    return numberComputed(op, ins, origin.primitive);
  Ids outs;
  for (ir::Value result : op.results()) {
    outs.push_back(newValue(result, mayBeLinear));
    values[outs.back()].isConstant = allConstant;
  }
  return outs;
}

/// Numbers the results of an operation by its name, attributes, types and operands.
Equations::Ids Equations::numberComputed(Operation op, const Ids &ins, TextId primitive) {
  std::vector<uint64_t> key{bits(op.name().opaque()), primitive, 0};
  for (NamedAttribute attr : op.attributes())
    if (attr.name != ids_.frontendAttributes && attr.name.str().substr(0, 7) != "hlotag.") {
      key.push_back(bits(attr.name.opaque()));
      key.push_back(bits(attr.value.opaque()));
    }
  for (ir::Value result : op.results())
    key.push_back(bits(result.type().ptr));
  key.insert(key.end(), ins.begin(), ins.end());
  bool isConstant = !ins.empty() && std::all_of(ins.begin(), ins.end(),
                                                [&](ValueId in) { return values[in].isConstant; });
  Ids outs;
  for (ir::Value result : op.results()) {
    key[2] = uint64_t(result.number());
    ValueId value = numberOf(key, result);
    values[value].isConstant = isConstant;
    values[value].op = op.name();
    for (size_t i = 0; i < 2 && i < ins.size(); ++i)
      values[value].operands[i] = ins[i];
    outs.push_back(value);
  }
  return outs;
}

/// Appends the operation to the last equation if they have one location, and the operation uses its
/// values or is the result of its primitive. Otherwise starts an equation. An equation ends with
/// the operation that its primitive lowers to.
void Equations::addTo(Operation op, const Ids &ins, const Ids &outs, const Origin &origin,
                      const Frame &frame) {
  bool isResult = analysis::isLoweredTo(provenance_.text(origin.primitive), op.name().str());
  Equation *last = equations.empty() ? nullptr : &equations.back();
  auto isUsed = [&](ValueId in) { return contains(last->outs, in) || roots_.count(in); };
  bool joins = last && last->location == op.location().opaque() && last->site == frame.site &&
               !last->hasResult && last->isDerived == isDerived(origin, frame) &&
               (isResult || std::any_of(ins.begin(), ins.end(), isUsed));
  if (!joins) {
    roots_.clear();
    last = &equations.emplace_back(startOf(op, origin, frame));
  }
  last->ops.push_back(op);
  Ids roots = rootsOf(ins);
  for (ValueId out : outs)
    roots_[out] = roots;
  if (!isResult) {
    for (ValueId root : roots)
      if (!contains(last->ins, root) || last->ops.size() == 1)
        last->ins.push_back(root);
    last->outs.insert(last->outs.end(), outs.begin(), outs.end());
    return;
  }
  if (op.name() == select_ && roots.size() == 3)
    std::swap(roots[1], roots[2]); // JAX's select_n takes the case for false first
  last->ins = std::move(roots);
  last->outs = outs;
  last->hasResult = true;
}

/// Returns an equation of the location of `op`, without operations.
Equation Equations::startOf(Operation op, const Origin &origin, const Frame &frame) {
  Equation equation;
  equation.location = op.location().opaque();
  equation.primitive = origin.primitive;
  equation.place = placeOf(frame.place, origin);
  equation.site = frame.site;
  equation.isCopy = isCopy(origin, frame);
  equation.isDerived = isDerived(origin, frame);
  equation.isBeyondTable = isHigherOrder(origin) || (equation.isDerived && isBatchedAfter(origin));
  return equation;
}

/// Returns the values from outside the last equation that `ins` are computed from.
Equations::Ids Equations::rootsOf(const Ids &ins) const {
  Ids roots;
  for (ValueId in : ins) {
    auto inner = roots_.find(in);
    if (inner == roots_.end())
      roots.push_back(in);
    else
      roots.insert(roots.end(), inner->second.begin(), inner->second.end());
  }
  return roots;
}

} // namespace hlotag::derivation
