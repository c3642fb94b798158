// SPDX-License-Identifier: Apache-2.0
#include "derivatives.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace hlotag::analysis {

using namespace ir;

namespace {

struct DerivativeText {
  std::string_view primitive;
  std::string_view names; ///< of the operations that its derivatives consist of
};

#include "derivatives.inc"

/// The sum of two cotangents of one value. Its line is that of either's primal.
constexpr std::string_view kSum = "add_any";

/// Returns true for functions, modules and terminators, which compute nothing.
bool isNoOperation(Operation op, const ir::OpIds &ids) {
  return ids.is(op.name(), kUntaggable) || op.block().terminator() == op;
}

} // namespace

Derivatives::Derivatives(const OpList &operations, Provenance &provenance, size_t maxFlows)
    : maxFlows_(maxFlows), provenance_(provenance), ids_(operations[0].op.context()),
      sum_(provenance.intern(kSum)) {
  for (const DerivativeText &row : kDerivatives) {
    std::vector<Emission> &emissions = emissions_[provenance.intern(row.primitive)];
    for (std::string_view rest = row.names; !rest.empty();) {
      std::string_view name = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(name.size() + 1, rest.size()));
      Emission &emission = emissions.emplace_back();
      size_t start = name.find_first_not_of("~^<");
      std::string_view marks = name.substr(0, start);
      emission.onlyBatched = marks.find('~') != std::string_view::npos;
      emission.onlyBroadcasting = marks.find('^') != std::string_view::npos;
      emission.takesCotangent = marks.find('<') != std::string_view::npos;
      emission.makesCotangent = name.back() == '>';
      name.remove_prefix(start);
      name.remove_suffix(emission.makesCotangent);
      emission.name = provenance.intern(name);
    }
  }
  const CallGraph &calls = provenance.calls();
  for (size_t i = 0; i < calls.functions().size(); ++i)
    *functions_.insert(calls.functions()[i].op.opaque()).first = i;
  std::vector<Operation> forward;
  for (size_t i = 1; i < operations.size();) {
    const OpList::Item &item = operations[i];
    bool isBody = item.hasRegions && !isSite(item.op) && !ids_.is(item.name, kUntaggable);
    i = isBody ? operations.after(i) : i + 1;
    if (isNoOperation(item.op, ids_) || item.name == ids_.constant)
      continue;
    const Origin &origin = provenance.of(item.op);
    if (item.name == ids_.whileOp)
      loopSources_.insert(origin.sourceKey);
    if (origin.sourceKey && !origin.transposed && !origin.rematted)
      forward.push_back(item.op);
  }
  // Users before what they use.
  for (auto op = forward.rbegin(); op != forward.rend(); ++op) {
    uint64_t key = keyOf(provenance.of(*op));
    bool isPrimal = isNeeded(*op, key);
    Expression &expression = expressions_[key];
    *expression.isPrimal.insert(op->opaque()).first = isPrimal;
    if (isPrimal && mayDiffer(*op))
      expression.primals.push_back(*op);
  }
  for (auto &expression : expressions_)
    removeHelpers(expression.second.primals);
}

/// Removes the operations that prepare operands for the one that their primitive is.
void Derivatives::removeHelpers(std::vector<Operation> &primals) {
  std::set<TextId> complete;
  auto isResult = [&](Operation op) {
    return isLoweredTo(provenance_.text(provenance_.of(op).primitive), op.name().str());
  };
  for (Operation op : primals)
    if (isResult(op))
      complete.insert(provenance_.of(op).primitive);
  auto isHelper = [&](Operation op) {
    return !isSite(op) && !isResult(op) && complete.count(provenance_.of(op).primitive);
  };
  primals.erase(std::remove_if(primals.begin(), primals.end(), isHelper), primals.end());
}

const std::vector<Operation> &Derivatives::candidatesFor(Operation op) {
  static const std::vector<Operation> none;
  const Origin &origin = provenance_.of(op);
  auto expression = expressions_.find(keyOf(origin));
  if ((!origin.transposed && !origin.rematted) || expression == expressions_.end())
    return none;
  const std::vector<Operation> &primals = expression->second.primals;
  if (origin.primitive == sum_)
    return addsKnown(op) ? primals : none;
  auto [known, isNew] = candidates_.try_emplace(signatureOf(op, origin));
  if (isNew)
    std::copy_if(primals.begin(), primals.end(), std::back_inserter(known->second),
                 [&](Operation primal) { return mayEmit(primal, op); });
  return known->second;
}

/// Equal for operations with equal candidates: in the layers of an unrolled loop.
std::vector<uint64_t> Derivatives::signatureOf(Operation op, const Origin &origin) const {
  auto bits = [](const void *pointer) { return uint64_t(reinterpret_cast<uintptr_t>(pointer)); };
  std::vector<uint64_t> signature{keyOf(origin), origin.primitive, origin.transforms,
                                  origin.rematted, bits(op.name().opaque())};
  for (Value operand : op.operands())
    signature.push_back(bits(operand.type().ptr));
  for (Value result : op.results())
    signature.push_back(bits(result.type().ptr));
  return signature;
}

/// Returns whether the operands of a sum that are of its expression have candidates.
bool Derivatives::addsKnown(Operation sum) {
  const Origin &origin = provenance_.of(sum);
  for (Value operand : sum.operands()) {
    Operation added = operand.definingOp();
    if (!added || provenance_.of(added).primitive == sum_ ||
        keyOf(provenance_.of(added)) != keyOf(origin))
      continue;
    if (candidatesFor(added).empty())
      return false;
  }
  return true;
}

/// Returns whether `op` runs other equations: a call, a loop, a conditional.
bool Derivatives::isSite(Operation op) const { return ids_.is(op.name(), kRunsEquations); }

bool Derivatives::mayEmit(Operation primal, Operation op) {
  if (isSite(primal) || isSite(op))
    return primal.name() == op.name();
  const Origin &origin = provenance_.of(op), &from = provenance_.of(primal);
  if (origin.rematted && origin.primitive == from.primitive)
    return true;
  // The derivative of a derivative may be anything.
  std::string transforms = provenance_.paths().text(origin.transforms);
  bool isFirstOrder = std::count(transforms.begin(), transforms.end(), 't') < 2;
  auto row = emissions_.find(from.primitive);
  if (!isFirstOrder || row == emissions_.end())
    return true;
  bool isBatched = transforms.find('v') != std::string_view::npos;
  return std::any_of(row->second.begin(), row->second.end(), [&](const Emission &emission) {
    return emission.name == origin.primitive &&
           (isBatched || (!emission.onlyBatched && fits(emission, primal, op)));
  });
}

/// Returns whether `op` has the types that an emission of `primal` has.
bool Derivatives::fits(const Emission &emission, Operation primal, Operation op) const {
  std::set<const void *> operands, results;
  for (Value operand : primal.operands()) {
    operands.insert(operand.type().ptr);
    Operation helper = operand.definingOp();
    if (helper && helper.location() == primal.location())
      for (Value inner : helper.operands())
        if (Operation made = inner.definingOp(); !made || made.name() != ids_.constant)
          operands.insert(inner.type().ptr);
  }
  for (Value result : primal.results())
    results.insert(result.type().ptr);
  bool takes = !emission.takesCotangent, makes = !emission.makesCotangent;
  for (Value operand : op.operands())
    takes |= results.count(operand.type().ptr) != 0;
  for (Value result : op.results())
    makes |= operands.count(result.type().ptr) != 0;
  bool broadcasts = !emission.onlyBroadcasting;
  for (const void *type : operands)
    broadcasts |= results.count(type) == 0;
  return takes && makes && broadcasts;
}

bool Derivatives::isFloat(Value value) {
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

/// Returns whether `op` may have a derivative.
bool Derivatives::mayDiffer(Operation op) {
  bool takesFloat = isSite(op), givesFloat = takesFloat;
  for (Value operand : op.operands())
    takesFloat |= isFloat(operand);
  for (Value result : op.results())
    givesFloat |= isFloat(result);
  return takesFloat && givesFloat;
}

/// Returns whether an operation outside of the expression, or one inside that is needed itself,
/// uses a result of `op`.
bool Derivatives::isNeeded(Operation op, uint64_t expression) {
  std::vector<Value> values;
  for (Value result : op.results())
    values.push_back(result);
  PointerMap<bool> seen;
  while (!values.empty()) {
    Value value = values.back();
    values.pop_back();
    if (!seen.insert(value.opaque()).second)
      continue;
    if (seen.size() > maxFlows_) {
      ++numCutOff_;
      return true;
    }
    for (OpOperand use : value.uses()) {
      Operation user = use.owner();
      if (isSite(user) || isNoOperation(user, ids_)) {
        if (leavesModule(user))
          return true;
        addFlows(use, values);
        continue;
      }
      if (movesSlices(user)) {
        for (Value result : user.results())
          values.push_back(result);
        continue;
      }
      const Origin &origin = provenance_.of(user);
      if (keyOf(origin) != expression)
        return true;
      auto known = expressions_.find(expression);
      const bool *isPrimal =
          known == expressions_.end() ? nullptr : known->second.isPrimal.find(user.opaque());
      if (isPrimal && *isPrimal)
        return true;
    }
  }
  return false;
}

/// Returns whether `op` returns values to callers outside of the module.
bool Derivatives::leavesModule(Operation op) const {
  const size_t *function =
      op.name() == ids_.funcReturn ? functions_.find(op.parent().opaque()) : nullptr;
  return function && provenance_.calls().functions()[*function].callers.empty();
}

/// Adds the values that `use` passes its value on as: arguments of functions and loops, results.
void Derivatives::addFlows(OpOperand use, std::vector<Value> &values) const {
  Operation user = use.owner();
  intptr_t number = use.number();
  auto addArgument = [&](Operation op, intptr_t region) {
    Block block = region < op.regions().size() ? op.regions()[region].firstBlock() : Block();
    if (block && number < block.arguments().size())
      values.push_back(block.arguments()[number]);
  };
  auto addResult = [&](Operation op) {
    if (number < op.results().size())
      values.push_back(op.results()[number]);
  };
  const CallGraph &calls = provenance_.calls();
  if (user.name() == ids_.funcCall) {
    auto callee = user.attrOf<FlatSymbolRefAttr>("callee");
    size_t function = callee ? calls.find(callee.value()) : CallGraph::kNone;
    if (function != CallGraph::kNone)
      addArgument(calls.functions()[function].op, 0);
  } else if (isSite(user)) {
    addArgument(user, 0);
    addArgument(user, 1);
  } else if (user.name() == ids_.funcReturn) {
    if (const size_t *function = functions_.find(user.parent().opaque()))
      for (size_t site : calls.functions()[*function].callers)
        addResult(calls.callSites()[site].op);
  } else if (Operation parent = user.parent(); parent && isSite(parent)) {
    addResult(parent);
    if (parent.name() == ids_.whileOp) {
      addArgument(parent, 0);
      addArgument(parent, 1);
    }
  }
}

/// Returns whether `op` stacks residuals of a loop or takes them from a stack.
bool Derivatives::movesSlices(Operation op) {
  return ids_.is(op.name(), kMovesSlices) && loopSources_.find(provenance_.of(op).sourceKey);
}

} // namespace hlotag::analysis
