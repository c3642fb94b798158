// SPDX-License-Identifier: Apache-2.0
#include "analysis/side_effects.h"
#include "hlotag/analysis/call_graph.h"
#include "hlotag/pass/pass.h"
#include "hlotag/passes/passes.h"
#include "transforms/symbol_names.h"

#include <algorithm>
#include <map>

namespace hlotag::passes {

namespace {

using namespace pass;
using analysis::CallGraph;

class Outline final : public PassBase<Outline> {
public:
  static const PassInfo &staticInfo();
  LogicalResult run(PassContext &ctx) override;

private:
  Option<std::string> key_{options(), "key", "the key whose values name the groups", "MUST_FUSE"};
  Option<int64_t> minOps_{options(), "min-ops", "leave groups alone that have fewer operations", 1};
  Option<std::string> onRefusal_{options(),
                                 "on-refusal",
                                 "the severity of a group that cannot be outlined; after a "
                                 "warning the group stays",
                                 "error",
                                 {"error", "warning"}};
};

const PassInfo &Outline::staticInfo() {
  static const PassInfo info{
      "hlotag-outline", "HlotagOutline",
      "Make one function and one call of the operations with the same value of a key",
      R"md(Operations of one block with the same value of `key` move into a private function, in their order.
One `func.call` with that entry replaces them.

- The function is named after key and value. Operations keep their locations and all their entries.
- Its arguments are the values from outside, those that regions capture included. Its results are the values that are
  used outside.
- Operations between the members that depend on the group move behind the call; the others stay before it.

The pass refuses a group, and reports the operation in the way, if

- an operation outside depends on the group, and the group on it;
- the order of side effects would change. An operation has a side effect if it says so (`has_side_effect`); if it is an
  infeed, an outfeed, a send, a receive or a draw of random numbers; if its dialect is unknown to hlotag; or if
  something in its regions or in the function that it calls has one. Collectives are ordered by their operands.

Operations in the regions of loops and conditionals are outlined there, unless the loop or conditional itself is in the
group. Bodies of reductions, sorts and scatters are part of their operation. What is outlined already stays: a call that
is alone in its group, and the body of a function whose calls all have the entry.

Cost: linear in the operations, plus for each group those between its members.

Before:

```mlir
func.func public @main(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {MUST_FUSE = "1"}} : tensor<f32>
  %1 = stablehlo.negate %0 : tensor<f32>
  %2 = stablehlo.add %0, %y {mhlo.frontend_attributes = {MUST_FUSE = "1"}} : tensor<f32>
  %3 = stablehlo.multiply %1, %2 : tensor<f32>
  return %3 : tensor<f32>
}
```

After:

```mlir
func.func public @main(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  %0:2 = call @MUST_FUSE_1(%x, %y) {mhlo.frontend_attributes = {MUST_FUSE = "1"}}
      : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  %1 = stablehlo.negate %0#0 : tensor<f32>
  %2 = stablehlo.multiply %1, %0#1 : tensor<f32>
  return %2 : tensor<f32>
}
func.func private @MUST_FUSE_1(%x: tensor<f32>, %y: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {MUST_FUSE = "1"}} : tensor<f32>
  %1 = stablehlo.add %0, %y {mhlo.frontend_attributes = {MUST_FUSE = "1"}} : tensor<f32>
  return %0, %1 : tensor<f32>, tensor<f32>
}
```)md"};
  return info;
}

constexpr size_t kMaxSymbol = 64; // characters of a function's name before its number

/// The operations of one block with one value, in order.
struct Group {
  ir::Operation function;
  ir::Attribute value;
  std::vector<ir::Operation> members;
};

/// Decides which operations move behind a group, or why the group cannot be outlined.
class Placement {
public:
  enum class Obstacle { None, Value, SideEffect };

  Placement(const Group &group, analysis::SideEffects &effects) {
    // An obstacle through values explains more, so side effects are tried second.
    if (place(group, nullptr))
      place(group, &effects);
  }

  Obstacle obstacle() const { return obstacle_; }
  /// The obstacle: an operation outside that depends on the group, and a member that depends on it.
  ir::Operation outside() const { return outside_; }
  ir::Operation dependent() const { return dependent_; }
  /// Operations between the members that depend on the group.
  const std::vector<ir::Operation> &after() const { return after_; }

private:
  enum class Role : unsigned char { None, Member, After };

  bool place(const Group &group, analysis::SideEffects *effects);

  Obstacle obstacle_ = Obstacle::None;
  ir::Operation outside_, dependent_;
  std::vector<ir::Operation> after_;
};

bool Placement::place(const Group &group, analysis::SideEffects *effects) {
  ir::PointerMap<Role> roles;
  for (ir::Operation member : group.members)
    *roles.insert(member.opaque()).first = Role::Member;
  after_.clear();
  Role lastEffect = Role::None; // of the last operation with a side effect
  ir::Operation lastEffectOp;
  for (ir::Operation op = group.members.front();; op = op.nextInBlock()) {
    Role *found = roles.find(op.opaque());
    bool isMember = found && *found == Role::Member;
    bool dependsOnMember = false;
    ir::Operation afterOp; // an operation with Role::After that `op` depends on
    ir::forEachOperand(op, [&](ir::Operation, intptr_t, ir::Value value) {
      ir::Operation definition = value.definingOp();
      Role *role = definition ? roles.find(definition.opaque()) : nullptr;
      if (role && *role == Role::After && !afterOp)
        afterOp = definition;
      dependsOnMember |= role && *role == Role::Member;
    });
    if (effects && effects->has(op)) {
      dependsOnMember |= lastEffect == Role::Member;
      if (!afterOp && lastEffect == Role::After)
        afterOp = lastEffectOp;
      lastEffect = isMember ? Role::Member : dependsOnMember || afterOp ? Role::After : Role::None;
      lastEffectOp = op;
    }
    if (isMember && afterOp) {
      obstacle_ = effects ? Obstacle::SideEffect : Obstacle::Value;
      outside_ = afterOp;
      dependent_ = op;
      return false;
    }
    if (!isMember && (dependsOnMember || afterOp)) {
      *roles.insert(op.opaque()).first = Role::After;
      after_.push_back(op);
    }
    if (op == group.members.back())
      return true;
  }
}

/// The values that go into a group and come out of it, regions included.
struct Boundary {
  struct Result {
    ir::Value value;
    std::vector<ir::OpOperand> uses; ///< outside the group
  };

  explicit Boundary(const Group &group);

  std::vector<ir::Value> arguments;
  ir::PointerMap<intptr_t> argumentOf; ///< by value, its index in `arguments`
  std::vector<Result> results;
};

Boundary::Boundary(const Group &group) {
  ir::PointerMap<bool> inside;
  for (ir::Operation member : group.members)
    ir::walk(member, [&](ir::Operation op) { *inside.insert(op.opaque()).first = true; });
  for (ir::Operation member : group.members) {
    ir::forEachOperand(member, [&](ir::Operation, intptr_t, ir::Value value) {
      ir::Operation owner = value.isResult() ? value.definingOp() : value.ownerBlock().parentOp();
      if (inside.find(owner.opaque()))
        return;
      auto [index, isNew] = argumentOf.insert(value.opaque());
      if (!isNew)
        return;
      *index = intptr_t(arguments.size());
      arguments.push_back(value);
    });
    for (ir::Value value : member.results()) {
      Result result{value, {}};
      for (ir::OpOperand use : value.uses())
        if (!inside.find(use.owner().opaque()))
          result.uses.push_back(use);
      if (!result.uses.empty())
        results.push_back(std::move(result));
    }
  }
}

class Outliner {
public:
  Outliner(PassContext &ctx, std::string_view key, size_t minOps, bool warns)
      : ctx_(ctx), key_(key), minOps_(minOps), warns_(warns), graph_(ctx.operations(), ctx.ids()),
        effects_(graph_, ctx.ids()), manualComputation_(id("sdy.manual_computation")),
        names_(ctx.module(), ctx.ids()) {}

  void run() {
    for (const CallGraph::Function &function : graph_.functions())
      collect(function);
    for (Group &group : groups_)
      if (group.members.size() >= minOps_ && !isCall(group))
        outline(group);
  }

private:
  ir::Identifier id(std::string_view text) { return ir::Identifier::get(ctx_.context(), text); }

  ir::Attribute valueOf(ir::Operation op) {
    ir::DictionaryAttr entries = ctx_.tags().get(op);
    return entries ? entries.lookup(key_) : ir::Attribute();
  }
  /// Whether the group is outlined already.
  bool isCall(const Group &group) const {
    return group.members.size() == 1 && group.members[0].name() == ctx_.ids().funcCall;
  }
  /// Whether operations in the regions of `op` may be replaced by calls.
  bool isEntered(ir::Operation op) const {
    const ir::OpIds &ids = ctx_.ids();
    ir::Identifier name = op.name();
    return name == ids.func || name == ids.whileOp || name == ids.caseOp || name == ids.ifOp ||
           name == manualComputation_;
  }
  ir::Attribute valueOfCalls(const CallGraph::Function &function);
  bool isWithin(ir::Operation op, ir::Attribute value);
  void collect(const CallGraph::Function &function);
  void outline(Group &group);
  void moveInto(ir::Operation function, const Group &group, const Boundary &boundary);
  void refuse(const Group &group, const Placement &placement);
  std::string symbolFor(const Group &group);
  std::string describe(const Group &group) const {
    return std::string(key_) + " = " + group.value.str();
  }

  PassContext &ctx_;
  std::string_view key_;
  size_t minOps_;
  bool warns_;
  CallGraph graph_;
  analysis::SideEffects effects_;
  ir::Identifier manualComputation_;
  std::vector<Group> groups_;
  bool anyMoved_ = false;
  transforms::SymbolNames names_;
};

/// Returns the value that all calls of a private function have, or null.
ir::Attribute Outliner::valueOfCalls(const CallGraph::Function &function) {
  if (function.isRoot())
    return {};
  ir::Attribute value;
  for (size_t site : function.callers) {
    ir::Attribute own = valueOf(graph_.callSites()[site].op);
    if (!own || (value && own != value))
      return {};
    value = own;
  }
  return value;
}

/// Returns whether an operation around `op` has the value, and so includes `op` in its group.
bool Outliner::isWithin(ir::Operation op, ir::Attribute value) {
  for (op = op.parent(); op && op.name() != ctx_.ids().func; op = op.parent())
    if (valueOf(op) == value)
      return true;
  return false;
}

void Outliner::collect(const CallGraph::Function &function) {
  std::map<std::pair<const void *, const void *>, size_t> known; // by block and value
  size_t firstGroup = groups_.size();
  size_t numTopOps = 0;
  ir::walk(function.op, [&](ir::Operation op) {
    if (op == function.op)
      return ir::WalkResult::Advance;
    if (ctx_.ids().isNeverTagged(op.name()))
      return ir::WalkResult::Skip;
    numTopOps += op.parent() == function.op;
    if (ir::Attribute value = valueOf(op); value && !isWithin(op, value)) {
      auto [slot, isNew] = known.try_emplace({op.block().opaque(), value.opaque()}, groups_.size());
      if (isNew)
        groups_.push_back({function.op, value, {}});
      groups_[slot->second].members.push_back(op);
    }
    return isEntered(op) ? ir::WalkResult::Advance : ir::WalkResult::Skip;
  });
  // The function is outlined already if its body is one group and its calls have the value.
  if (groups_.size() == firstGroup)
    return;
  ir::Attribute value = valueOfCalls(function);
  for (size_t g = firstGroup; value && g < groups_.size(); ++g)
    if (groups_[g].value == value && groups_[g].members.size() == numTopOps &&
        groups_[g].members[0].parent() == function.op)
      groups_[g].members.clear();
}

std::string Outliner::symbolFor(const Group &group) {
  auto text = ir::dynCast<ir::StringAttr>(group.value);
  std::string base =
      std::string(key_) + "_" + (text ? std::string(text.value()) : group.value.str());
  for (char &c : base)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')))
      c = '_';
  base.resize(std::min(base.size(), kMaxSymbol));
  return names_.fresh(base);
}

void Outliner::refuse(const Group &group, const Placement &placement) {
  std::string count = std::to_string(group.members.size());
  std::string dependent(placement.dependent().name().str());
  std::string message =
      ir::concat({"cannot outline the ", count, " operations with ", describe(group)});
  if (placement.obstacle() == Placement::Obstacle::Value)
    message +=
        ir::concat({": this operation is not in the group, but uses a result of the group, and '",
                    dependent, "' in the group uses its result"});
  else
    message +=
        ir::concat({": this operation is not in the group, and side effects order it after one "
                    "operation of the group and before another, '",
                    dependent, "'"});
  if (warns_)
    ctx_.emitWarning(placement.outside(), message + "; the group was not outlined");
  else
    (void)ctx_.emitError(placement.outside(), message);
}

void Outliner::outline(Group &group) {
  // Operations that made room for another group may have passed each other.
  if (anyMoved_)
    std::sort(group.members.begin(), group.members.end(),
              [](ir::Operation a, ir::Operation b) { return a.isBefore(b); });
  Placement placement(group, effects_);
  if (placement.obstacle() != Placement::Obstacle::None)
    return refuse(group, placement);
  anyMoved_ |= !placement.after().empty();

  Boundary boundary(group);
  std::vector<MlirType> types;
  types.reserve(boundary.results.size());
  for (const Boundary::Result &result : boundary.results)
    types.push_back(result.value.type());
  ir::Rewriter &rewriter = ctx_.rewriter();
  ir::Operation last = group.members.back();
  // Without a name: XLA prepends a call's name to those of the body, which are complete.
  ir::Location source = ir::findFile(last.location());
  ir::Location location = source ? source : ir::Location::unknown(ctx_.context());
  std::string symbol = symbolFor(group);
  ir::Operation function =
      rewriter.insert(ir::createFunction(symbol, location, boundary.arguments, types),
                      group.function.block(), group.function.nextInBlock());
  ir::Operation call = rewriter.insert(
      ir::createOp("func.call", location, boundary.arguments, types,
                   {{ctx_.ids().callee, ir::FlatSymbolRefAttr::get(ctx_.context(), symbol)}}),
      last.block(), last);
  ctx_.tags().add(call, ir::DictionaryAttr::get(ctx_.context(), {{id(key_), group.value}}),
                  {"stands for operations that have it", group.members.front()});
  if (std::any_of(group.members.begin(), group.members.end(),
                  [&](ir::Operation member) { return effects_.has(member); }))
    effects_.add(symbol);

  for (ir::Operation op : placement.after())
    rewriter.move(op, call.block(), last);
  moveInto(function, group, boundary);
  for (size_t i = 0; i < types.size(); ++i)
    for (ir::OpOperand use : boundary.results[i].uses)
      rewriter.setOperand(use.owner(), intptr_t(use.number()), call.results()[intptr_t(i)]);
}

/// Moves the group into the body of `function`, which has an argument for each value from outside.
void Outliner::moveInto(ir::Operation function, const Group &group, const Boundary &boundary) {
  ir::Rewriter &rewriter = ctx_.rewriter();
  ir::Block body = function.regions()[0].firstBlock();
  for (ir::Operation member : group.members) {
    rewriter.move(member, body, {});
    ir::forEachOperand(member, [&](ir::Operation user, intptr_t number, ir::Value value) {
      if (const intptr_t *argument = boundary.argumentOf.find(value.opaque()))
        rewriter.setOperand(user, number, body.arguments()[*argument]);
    });
  }
  std::vector<ir::Value> returned;
  returned.reserve(boundary.results.size());
  for (const Boundary::Result &result : boundary.results)
    returned.push_back(result.value);
  rewriter.insert(ir::createOp("func.return", function.location(), returned, {}), body, {});
}

LogicalResult Outline::run(PassContext &ctx) {
  if (key_->empty())
    return ctx.emitError(ctx.module(), "the option 'key' must not be empty");
  size_t minOps = size_t(std::max<int64_t>(*minOps_, 1));
  Outliner(ctx, *key_, minOps, *onRefusal_ == "warning").run();
  return success();
}

} // namespace

std::unique_ptr<pass::Pass> createOutlinePass() { return std::make_unique<Outline>(); }

} // namespace hlotag::passes
