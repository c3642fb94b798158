// SPDX-License-Identifier: Apache-2.0
#include "hlotag/analysis/provenance.h"
#include "hlotag/pass/pass.h"
#include "hlotag/passes/passes.h"

#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace hlotag::passes {

namespace {

using namespace pass;
using analysis::CallGraph;
using analysis::Origin;
using ir::DictionaryAttr;
using ir::Operation;
using ir::Value;

/// An expression of the program: the operations of one scope, line and column.
using ExpressionId = std::pair<analysis::PathId, ir::FileLoc>;

/// Dead code leaves derivatives without a forward operation. So an expression hands on entries only
/// if one of its values is used outside of it: then the rest of it is alive too. Values that only
/// its own derivatives use are residuals, which do not count.
class Expressions {
public:
  Expressions(PassContext &ctx, const ir::OpList &operations);

  /// Gives the operations that autodiff derived, or that are recomputed, the entries of their
  /// forward operations, where these agree.
  void handOn() {
    for (Operation op : derived_)
      if (const Expression *from = findPrimal(op); from && from->entries)
        ctx_.tags().add(op, from->entries, {"derived by autodiff", from->primal, true});
  }

private:
  struct Expression {
    Operation primal;       ///< one of its operations
    DictionaryAttr entries; ///< for derived operations; null unless all agree
    bool agrees = true;
  };

  ExpressionId expressionOf(Operation op) {
    const Origin &origin = provenance_.of(op);
    return {origin.localScope, origin.source};
  }

  /// Returns the entries for operations derived from `primal`; null if there are none.
  DictionaryAttr entriesFor(Operation primal) {
    DictionaryAttr own = ctx_.tags().carried(primal);
    return own ? ctx_.tags().merge(ctx_.tags().dictionary(primal, ir::kDerived), own) : own;
  }

  /// What a derived operation has in common with the forward operations that it may come from,
  /// besides the expression. For calls, products and collectives that is their name. For others it
  /// is that they are derived, or recomputed. If those forward operations disagree, it is the types
  /// of values too.
  struct Trait {
    const void *kind;
    const void *taken = nullptr, *given = nullptr; ///< types; null for any
    bool operator<(const Trait &o) const {
      return std::tie(kind, taken, given) < std::tie(o.kind, o.taken, o.given);
    }
  };
  static constexpr char kRecomputed = 0, kDerived = 0;
  /// Kinds with types: a step of a derivative, a copy. A derivative of many steps, whose types are
  /// unknown, has to agree with those of a type.
  static constexpr char kStep = 0, kCopy = 0, kManySteps = 0;
  bool isApart(Operation op) const {
    return isSite(op) || ids_.is(op.name(), ir::kProduct) || ids_.is(op.name(), ir::kCollective);
  }

  void addPrimal(Operation op, DictionaryAttr entries, const Trait &trait) {
    auto [known, isNew] =
        expressions_.try_emplace({expressionOf(op), trait}, Expression{op, entries});
    known->second.agrees &= known->second.entries == entries;
  }

  /// Adds the types of copies and derivatives of `op`. A step of its derivative takes a cotangent
  /// of the result and gives one of an operand. Of two steps, the first takes the one and the
  /// second gives the other.
  void addTypes(Operation op, DictionaryAttr entries) {
    bool hasDerivative = mayDiffer(op);
    size_t steps = countSteps(op);
    if (hasDerivative && steps > 2)
      addPrimal(op, entries, {&kManySteps});
    if (op.results().size() != 1)
      return;
    const void *result = op.results()[0].type().ptr;
    for (Value value : op.operands()) {
      const void *operand = value.type().ptr;
      addPrimal(op, entries, {&kCopy, operand, result});
      if (!hasDerivative || !isFloat(value))
        continue;
      if (steps == 1)
        addPrimal(op, entries, {&kStep, result, operand});
      if (steps != 2)
        continue;
      addPrimal(op, entries, {&kStep, result, nullptr});
      addPrimal(op, entries, {&kStep, nullptr, operand});
    }
  }

  /// Returns in how many steps the derivative of `op` leads to an operand: 1, 2, or 3 for more.
  size_t countSteps(Operation op) {
    if (op.results().size() != 1 || op.name() == ids_.customCall || isSite(op))
      return 3;
    if (!op.regions().empty()) {
      ir::Block body = op.regions()[0].firstBlock();
      bool isSum =
          op.name() == ids_.reduce && body && body.firstOp() && body.firstOp().name() == ids_.add;
      return isSum ? 1 : 3;
    }
    Value result = op.results()[0];
    for (Value operand : op.operands()) {
      // What is broadcast within a dimension is summed up, and then gets the dimension back.
      bool keepsRank =
          op.name() == ids_.broadcast && operand.shape().size() == result.shape().size();
      bool isPointwise = operand.type().ptr == result.type().ptr || !isFloat(operand);
      if (keepsRank || !(isPointwise || ids_.is(op.name(), ir::kOneStep)))
        return 2;
    }
    return 1;
  }

  const Expression *find(Operation op, const Trait &trait) {
    auto known = expressions_.find({expressionOf(op), trait});
    return known == expressions_.end() ? nullptr : &known->second;
  }

  /// Returns the forward operations that have the types of `op`, a derived one, if they agree.
  const Expression *findByType(Operation op) {
    const Origin &origin = provenance_.of(op);
    // The derivative of a derivative has the types of either, a sum of cotangents those of a value
    // that any operation may have taken.
    bool isSum = op.name() == ids_.add && !origin.rematted;
    if (isSum || origin.numTransposes > 1 || origin.order > 1 || op.results().size() != 1)
      return nullptr;
    const Expression *found = nullptr;
    bool agrees = true;
    auto look = [&](const void *kind, const void *taken, const void *given) {
      const Expression *other = find(op, {kind, taken, given});
      if (!other)
        return;
      agrees &= other->agrees && (!found || found->entries == other->entries);
      found = other;
    };
    const void *result = op.results()[0].type().ptr;
    for (Value value : op.operands()) {
      const void *operand = value.type().ptr;
      if (origin.rematted) {
        look(&kCopy, operand, result);
        continue;
      }
      look(&kStep, operand, result);
      look(&kStep, operand, nullptr);
      look(&kStep, nullptr, result);
    }
    const Expression *many = find(op, {&kManySteps});
    if (found && many)
      agrees &= many->agrees && many->entries == found->entries;
    return agrees ? found : nullptr;
  }

  /// Returns the forward operations that `op`, a derived one, may come from, if they agree.
  const Expression *findPrimal(Operation op) {
    bool isRecomputed = provenance_.of(op).rematted;
    const Expression *all = find(op, {isApart(op)    ? op.name().opaque()
                                      : isRecomputed ? &kRecomputed
                                                     : &kDerived});
    return !all || all->agrees ? all : isApart(op) ? nullptr : findByType(op);
  }

  bool isSite(Operation op) const { return ids_.is(op.name(), ir::kRunsEquations); }
  bool isEquation(Operation op) {
    return ids_.isTaggable(op, op.name()) && op.name() != ids_.constant;
  }

  /// Returns whether `op` may have a derivative.
  bool mayDiffer(Operation op) {
    bool takesFloat = isSite(op), givesFloat = takesFloat;
    for (Value operand : op.operands())
      takesFloat |= isFloat(operand);
    for (Value result : op.results())
      givesFloat |= isFloat(result);
    return takesFloat && givesFloat;
  }

  bool isFloat(Value value) {
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

  /// Returns whether an operation outside of the expression, or one inside that is needed itself,
  /// uses a result of `op`. Follows values through calls and loops, up to a number of values.
  bool isNeeded(Operation op, ExpressionId expression) {
    constexpr size_t kMaxValues = 256;
    std::vector<Value> values;
    auto addResults = [&](Operation of) {
      for (Value result : of.results())
        values.push_back(result);
    };
    addResults(op);
    ir::PointerMap<bool> seen;
    while (!values.empty()) {
      Value value = values.back();
      values.pop_back();
      if (!seen.insert(value.opaque()).second)
        continue;
      if (seen.size() > kMaxValues)
        return true;
      for (ir::OpOperand use : value.uses()) {
        Operation user = use.owner();
        if (isSite(user) || !ids_.isTaggable(user, user.name())) {
          if (!addFlows(use, values))
            return true;
          continue;
        }
        // What stacks residuals of a loop, or takes them from a stack.
        if (ids_.is(user.name(), ir::kMovesSlices) &&
            loopSources_.find(provenance_.of(user).source.opaque())) {
          addResults(user);
          continue;
        }
        const bool *isNeeded = isNeeded_.find(user.opaque());
        if (expressionOf(user) != expression || (isNeeded && *isNeeded))
          return true;
      }
    }
    return false;
  }

  /// Adds the values that `use` passes its value on as: arguments of functions and loops, results.
  /// Returns false if the value leaves the module.
  bool addFlows(ir::OpOperand use, std::vector<Value> &values) {
    Operation user = use.owner();
    intptr_t number = use.number();
    auto addArguments = [&](Operation op) {
      for (ir::Region region : op.regions())
        if (ir::Block block = region.firstBlock(); block && number < block.arguments().size())
          values.push_back(block.arguments()[number]);
    };
    auto addResult = [&](Operation op) {
      if (number < op.results().size())
        values.push_back(op.results()[number]);
    };
    const CallGraph &calls = provenance_.calls();
    if (user.name() == ids_.funcCall) {
      auto callee = user.attrOf<ir::FlatSymbolRefAttr>("callee");
      size_t function = callee ? calls.find(callee.value()) : CallGraph::kNoFunction;
      if (function != CallGraph::kNoFunction)
        addArguments(calls.functions()[function].op);
    } else if (isSite(user)) {
      addArguments(user);
    } else if (const size_t *function = calls.find(user.parent())) {
      for (size_t site : calls.functions()[*function].callers)
        addResult(calls.callSites()[site].op);
      return !calls.functions()[*function].callers.empty();
    } else if (Operation parent = user.parent(); isSite(parent)) {
      addResult(parent);
      if (parent.name() == ids_.whileOp)
        addArguments(parent);
    }
    return true;
  }

  PassContext &ctx_;
  const ir::OpIds &ids_;
  analysis::Provenance provenance_;
  std::map<std::pair<ExpressionId, Trait>, Expression> expressions_;
  std::vector<Operation> derived_;   // by autodiff, or recomputed
  ir::PointerMap<bool> isNeeded_;    // by forward operation
  ir::PointerMap<bool> floats_;      // by type
  ir::PointerMap<bool> loopSources_; // by source
};

Expressions::Expressions(PassContext &ctx, const ir::OpList &operations)
    : ctx_(ctx), ids_(ctx.ids()), provenance_(ctx.ids(), ctx.calls()) {
  std::vector<Operation> forward;
  ir::PointerMap<Operation> atLocation; // an operation there that has entries
  for (size_t i = 1; i < operations.size();) {
    const ir::OpList::Item &item = operations[i];
    i = ids_.hasBody(item) ? operations.after(i) : i + 1;
    if (!isEquation(item.op))
      continue;
    const Origin &origin = provenance_.of(item.op);
    if (item.name == ids_.whileOp)
      loopSources_.insert(origin.source.opaque());
    if (!origin.source)
      continue;
    if (origin.transposed || origin.rematted) {
      derived_.push_back(item.op);
      continue;
    }
    forward.push_back(item.op);
    if (entriesFor(item.op))
      *atLocation.insert(item.op.location().opaque()).first = item.op;
  }
  // Users before what they use.
  for (auto op = forward.rbegin(); op != forward.rend(); ++op) {
    ExpressionId id = expressionOf(*op);
    bool isNeeded = this->isNeeded(*op, id);
    *isNeeded_.insert(op->opaque()).first = isNeeded;
    if (!isNeeded)
      continue;
    DictionaryAttr entries = entriesFor(*op);
    // A helper in the lowering of another operation. Of one name, both are results of equations.
    const Operation *other = atLocation.find(op->location().opaque());
    if (!entries && other && other->name() != op->name())
      entries = entriesFor(*other);
    if (isApart(*op))
      addPrimal(*op, entries, {op->name().opaque()});
    addPrimal(*op, entries, {&kRecomputed});
    if (mayDiffer(*op))
      addPrimal(*op, entries, {&kDerived});
    addTypes(*op, entries);
  }
}

class PropagateAutodiff final : public Pass {
public:
  PropagateAutodiff()
      : Pass(
            {"hlotag-propagate-autodiff", "HlotagPropagateAutodiff",
             "Hand entries from forward operations to the backward operations derived from them"}) {
  }

  void run(PassContext &ctx) override { Expressions(ctx, ctx.operations()).handOn(); }
};

} // namespace

std::unique_ptr<Pass> createPropagateAutodiffPass() {
  return std::make_unique<PropagateAutodiff>();
}

} // namespace hlotag::passes
