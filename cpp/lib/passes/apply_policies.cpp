// SPDX-License-Identifier: Apache-2.0
#include "analysis/groups.h"
#include "hlotag/analysis/entries.h"
#include "hlotag/analysis/provenance.h"
#include "hlotag/ir/nesting.h"
#include "hlotag/pass/pass.h"
#include "hlotag/passes/passes.h"

#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>

namespace hlotag::passes {

namespace {

using namespace pass;

class ApplyPolicies final : public PassBase<ApplyPolicies> {
public:
  static const PassInfo &staticInfo();
  LogicalResult run(PassContext &ctx) override;

private:
  Option<std::string> policies_{options(), "policies",
                                "an array attribute of policies: [{key = \"k\", derived = "
                                "\"retag\", offset = 100}, ...]"};
  Option<bool> defaults_{options(), "defaults",
                         "drop ids of `_scheduling_group_id` and `collective_group_key` that both "
                         "phases have, unless a policy names the key"};
  Option<bool> report_{options(), "report", "emit a remark for each changed value"};
};

const PassInfo &ApplyPolicies::staticInfo() {
  static const PassInfo info{
      "hlotag-apply-policies", "HlotagApplyPolicies",
      "Drop or rename the entries of backward operations, by key",
      R"md(For modules with tags of other tools, or with the same tags in both phases. Tags of `hlotag.tag` and of
rules use `grad` instead. `policies` is an MLIR array attribute. Each element is a dictionary with the fields

| field | |
|---|---|
| `key` | the key; a key has at most one policy |
| `derived` | in the backward pass: `"drop"` removes the key, `"same"` keeps its value, `"retag"` changes its id |
| `offset` | for `"retag"`: an integer to add to integer ids |
| `suffix` | for `"retag"`: text to append to other ids, and to integers without `offset` |

`"retag"` changes an id only if the forward pass has it too. So ids of the backward pass alone stay, and a second
run changes nothing. A new id that is in use is an error. The id of the value `G:I` of `_scheduling_group_id` is
`G`; the values `noop` and `:I` have no id and stay.

`defaults` drops an id of a scheduling or collective group in the backward pass if the forward pass has it too,
and drops `keep_original_sequence_order_in_group` with its group. Recomputed operations (`jax.checkpoint`) belong
to the backward pass.

Before, with `policies=[{key = "g", derived = "retag", offset = 100}]`:

```mlir
%0 = stablehlo.sine %x {mhlo.frontend_attributes = {g = "40"}} : tensor<f32> loc("jit(f)/jvp()/sin")
%1 = stablehlo.cosine %0 {mhlo.frontend_attributes = {g = "40"}} : tensor<f32> loc("jit(f)/transpose(jvp())/mul")
```

After:

```mlir
%0 = stablehlo.sine %x {mhlo.frontend_attributes = {g = "40"}} : tensor<f32> loc("jit(f)/jvp()/sin")
%1 = stablehlo.cosine %0 {mhlo.frontend_attributes = {g = "140"}} : tensor<f32> loc("jit(f)/transpose(jvp())/mul")
```)md"};
  return info;
}

using analysis::kGroupOrder;
using analysis::kSchedulingGroup;

enum class Derived { Drop, Same, Retag };

struct Policy {
  std::optional<Derived> derived;
  bool onlyShared = false; ///< applies only to ids that the forward pass has too
  std::optional<int64_t> offset;
  std::optional<std::string> suffix;
};

using Policies = std::map<std::string, Policy, std::less<>>;

/// The option `policies` is malformed.
class PolicyError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

std::optional<int64_t> parseInteger(std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool isInteger = !text.empty() && error == std::errc() && end == text.data() + text.size();
  return isInteger ? std::optional<int64_t>(value) : std::nullopt;
}

class PolicyReader {
public:
  PolicyReader(size_t number, ir::Attribute attr) : number_(number), attr_(attr) {}

  void readInto(Policies &policies) {
    auto fields = ir::dynCast<ir::DictionaryAttr>(attr_);
    if (!fields)
      fail("must be a dictionary, but is " + attr_.str());
    Policy policy;
    std::string key;
    for (ir::NamedAttribute field : fields) {
      std::string_view name = field.name.str();
      if (name == "key") {
        key = string(name, field.value);
      } else if (name == "derived") {
        policy.derived = derived(field.value);
      } else if (name == "suffix") {
        policy.suffix = string(name, field.value);
      } else if (name == "offset") {
        policy.offset = integer(name, field.value);
      } else {
        fail(ir::concat(
            {"has an unknown field '", name, "'; fields are key, derived, offset, suffix"}));
      }
    }
    check(key, policy);
    if (!policies.emplace(key, policy).second)
      fail(ir::concat({"is the second for the key '", key, "'"}));
  }

private:
  [[noreturn]] void fail(const std::string &what) {
    throw PolicyError(ir::concat({"policy ", std::to_string(number_), " ", what}));
  }

  void check(const std::string &key, Policy &policy) {
    if (key.empty())
      fail("needs a 'key'");
    if (ir::isReservedKey(key))
      fail(ir::concat({"is for the key '", key, "', which is reserved"}));
    if (!policy.derived)
      fail("needs 'derived': \"drop\", \"same\" or \"retag\"");
    bool renames = policy.offset || policy.suffix;
    if (policy.derived == Derived::Retag && !renames)
      fail("needs an 'offset' or a 'suffix' for the new ids");
    if (policy.derived != Derived::Retag && renames)
      fail("has an 'offset' or a 'suffix', which are for \"retag\" only");
    if ((policy.offset && *policy.offset == 0) || (policy.suffix && policy.suffix->empty()))
      fail("would not change ids: 'offset' must not be 0, 'suffix' must not be empty");
    policy.onlyShared = policy.derived == Derived::Retag;
  }

  std::string string(std::string_view field, ir::Attribute attr) {
    auto text = ir::dynCast<ir::StringAttr>(attr);
    if (!text)
      fail(
          ir::concat({"has the field '", field, "', which must be a string, but is ", attr.str()}));
    return std::string(text.value());
  }

  int64_t integer(std::string_view field, ir::Attribute attr) {
    // Printed as `100 : i64`; hlotag does not use the C function that reads integers.
    std::string text = attr.str();
    std::optional<int64_t> value = parseInteger(text.substr(0, text.find(' ')));
    if (!value)
      fail(ir::concat({"has the field '", field, "', which must be an integer, but is ", text}));
    return *value;
  }

  Derived derived(ir::Attribute attr) {
    std::string text = string("derived", attr);
    if (text == "drop")
      return Derived::Drop;
    if (text == "retag")
      return Derived::Retag;
    if (text != "same")
      fail("has the field 'derived', which must be \"drop\", \"same\" or \"retag\", but is " +
           attr.str());
    return Derived::Same;
  }

  size_t number_;
  ir::Attribute attr_;
};

Policies parsePolicies(MlirContext context, std::string_view text) {
  Policies policies;
  if (text.find_first_not_of(" \t\n") == std::string_view::npos)
    return policies;
  if (ir::nestingDepth(text) > ir::kMaxAttributeDepth)
    throw PolicyError("policies must be an MLIR array attribute of dictionaries; this text is "
                      "nested deeper than " +
                      std::to_string(ir::kMaxAttributeDepth) + " brackets");
  ir::Attribute attr = capi::fn().mlirAttributeParseGet(context, ir::toRef(text));
  auto list = ir::dynCast<ir::ArrayAttr>(attr);
  if (!list)
    throw PolicyError("policies must be an MLIR array attribute of dictionaries, got: " +
                      std::string(text));
  for (intptr_t i = 0; i < list.size(); ++i)
    PolicyReader(size_t(i) + 1, list[i]).readInto(policies);
  return policies;
}

std::string textOf(ir::Attribute value) {
  auto text = ir::dynCast<ir::StringAttr>(value);
  return text ? std::string(text.value()) : value.str();
}

/// Applies `offset` or `suffix` to `id`; null if neither applies.
std::optional<std::string> rename(const std::string &id, const Policy &policy) {
  if (std::optional<int64_t> number = parseInteger(id); number && policy.offset) {
    int64_t sum = 0;
    bool overflows = __builtin_add_overflow(*number, *policy.offset, &sum);
    return overflows ? std::nullopt : std::optional<std::string>(std::to_string(sum));
  }
  return policy.suffix ? std::optional<std::string>(id + *policy.suffix) : std::nullopt;
}

/// The part of a value that names a group; empty if the value names none.
std::string_view idOf(std::string_view key, std::string_view value) {
  return key == kSchedulingGroup ? analysis::groupOf(value) : value;
}

class Applier {
public:
  Applier(PassContext &ctx, Policies policies)
      : ctx_(ctx), policies_(std::move(policies)), provenance_(ctx.operations()),
        carrier_(ctx.rewriter(), ctx.tags(), ctx.ids()),
        broadcast_(ir::Identifier::get(ctx.context(), "stablehlo.broadcast_in_dim")) {}

  void run() {
    // Collect the ids of each phase before any change.
    for (const ir::OpList::Entry &entry : ctx_.operations()) {
      ir::Operation op = entry.op;
      ir::DictionaryAttr entries = ctx_.tags().get(op);
      if (!entries || !carrier_.isTaggable(entry.name))
        continue;
      bool isBackward = provenance_.isTransposed(op);
      // The constant cotangent at the start of a gradient shares a tag with the backward pass, but
      // its name has no phase.
      if (!isBackward && isConstant(op))
        continue;
      if ((isBackward ? backward_ : forward_).insert(entries.opaque()).second)
        collect(entries, isBackward ? backwardIds_ : forwardIds_);
      if (isBackward)
        ops_.emplace_back(op, entries);
    }
    for (auto &[op, entries] : ops_) {
      auto [result, isNew] = results_.insert(entries.opaque());
      if (isNew)
        *result = apply(op, entries);
      if (result->entries == entries)
        continue;
      ctx_.tags().set(op, result->entries, {result->step});
      for (size_t change : result->changes)
        ++changes_[change].count;
    }
  }

  void report() {
    for (const Change &change : changes_)
      ctx_.emitRemark(
          change.first,
          change.text + " on " + std::to_string(change.count) +
              (change.count == 1 ? " operation" : " operations, of which this is the first"));
  }

private:
  using Ids = std::set<std::pair<std::string, std::string>>; // (key, id)
  /// A changed value, for `report`.
  struct Change {
    ir::Operation first;
    std::string text;
    size_t count = 0;
  };
  /// A dictionary after applying the policies.
  struct Result {
    ir::DictionaryAttr entries;
    std::vector<size_t> changes;
    std::string step; ///< the new values, for hlotag.origins
  };

  /// Whether `op` is a constant or a broadcast constant.
  bool isConstant(ir::Operation op) const {
    if (op.name() == broadcast_ && op.operands()[0].isResult())
      op = op.operands()[0].definingOp();
    return op.name() == ctx_.ids().constant;
  }
  /// The policy of the entry's key; null if none, and for the sentinel of a removed key.
  const Policy *policyFor(ir::NamedAttribute entry) const {
    auto found = policies_.find(entry.name.str());
    return found == policies_.end() || ir::isUnset(entry.value) ? nullptr : &found->second;
  }
  /// Adds the ids of `entries` that have a policy. Values without an id name no group.
  void collect(ir::DictionaryAttr entries, Ids &ids) {
    for (ir::NamedAttribute entry : entries)
      if (policyFor(entry))
        if (std::string id(idOf(entry.name.str(), textOf(entry.value))); !id.empty())
          ids.emplace(entry.name.str(), id);
  }
  Result apply(ir::Operation op, ir::DictionaryAttr entries);
  /// The value of `entry` on backward operations; null to drop it.
  ir::Attribute derive(ir::Operation op, ir::NamedAttribute entry, const Policy &policy);
  size_t noteChange(ir::Operation op, ir::NamedAttribute entry, ir::Attribute to);

  PassContext &ctx_;
  Policies policies_;
  analysis::Provenance provenance_;
  analysis::EntryCarrier carrier_;
  ir::Identifier broadcast_;
  std::set<const void *> forward_, backward_; // distinct dictionaries of each phase
  Ids forwardIds_, backwardIds_;
  std::vector<std::pair<ir::Operation, ir::DictionaryAttr>> ops_; // of the backward pass
  ir::PointerMap<Result> results_;
  std::vector<Change> changes_;
  std::map<std::pair<const void *, const void *>, size_t> changeOf_;   // by (key, value)
  std::map<std::pair<std::string, std::string>, std::string> renamed_; // old id by (key, new id)
};

Applier::Result Applier::apply(ir::Operation op, ir::DictionaryAttr entries) {
  Result result;
  std::vector<ir::NamedAttribute> kept;
  bool losesGroup = false;
  for (ir::NamedAttribute entry : entries) {
    ir::Attribute value = entry.value;
    if (const Policy *policy = policyFor(entry))
      value = derive(op, entry, *policy);
    if (value != entry.value)
      result.changes.push_back(noteChange(op, entry, value));
    if (value && value != entry.value)
      result.step += (result.step.empty() ? "" : ", ") + changes_[result.changes.back()].text;
    if (value)
      kept.push_back({entry.name, value});
    else
      losesGroup |= entry.name.str() == kSchedulingGroup;
  }
  // Without the group, kGroupOrder has no meaning: drop it too, unless it has a policy.
  for (size_t i = 0; losesGroup && i < kept.size(); ++i) {
    if (kept[i].name.str() != kGroupOrder || policies_.count(kGroupOrder))
      continue;
    result.changes.push_back(noteChange(op, kept[i], {}));
    kept.erase(kept.begin() + intptr_t(i));
    break;
  }
  if (result.changes.empty())
    result.entries = entries;
  else if (!kept.empty())
    result.entries = ir::DictionaryAttr::get(ctx_.context(), kept);
  return result;
}

ir::Attribute Applier::derive(ir::Operation op, ir::NamedAttribute entry, const Policy &policy) {
  std::string key(entry.name.str()), value = textOf(entry.value);
  std::string id(idOf(key, value));
  if (policy.derived == Derived::Same || (policy.onlyShared && !forwardIds_.count({key, id})))
    return entry.value;
  if (policy.derived == Derived::Drop)
    return {};
  std::optional<std::string> other = rename(id, policy);
  if (!other) {
    (void)ctx_.emitError(op, ir::concat({"cannot retag '", key, "' = ", entry.value.str(),
                                         (": 'offset' needs an integer and a sum within 64 bits, "
                                          "and the policy has no 'suffix'")}));
    return entry.value;
  }
  auto [former, isNew] = renamed_.try_emplace({key, *other}, id);
  if (forwardIds_.count({key, *other}) || backwardIds_.count({key, *other}) || former->second != id)
    (void)ctx_.emitError(op,
                         ir::concat({"cannot retag '", key, "' = ", entry.value.str(), ": the id '",
                                     *other, "' is in use; choose another 'offset' or 'suffix'"}));
  return ir::StringAttr::get(ctx_.context(), *other + value.substr(id.size()));
}

size_t Applier::noteChange(ir::Operation op, ir::NamedAttribute entry, ir::Attribute to) {
  auto [slot, isNew] =
      changeOf_.try_emplace({entry.name.opaque(), entry.value.opaque()}, changes_.size());
  if (isNew) {
    std::string what = ir::concat({"'", entry.name.str(), "' = ", entry.value.str()});
    changes_.push_back(
        {op, to ? ir::concat({"retagged ", what, " to ", to.str()}) : "dropped " + what, 0});
  }
  return slot->second;
}

LogicalResult ApplyPolicies::run(PassContext &ctx) {
  Policies policies;
  try {
    policies = parsePolicies(ctx.context(), *policies_);
  } catch (const PolicyError &error) {
    return ctx.emitError(ctx.module(), error.what());
  }
  if (*defaults_)
    for (std::string_view key : {kSchedulingGroup, analysis::kCollectiveGroup})
      policies.try_emplace(std::string(key), Policy{Derived::Drop, /*onlyShared=*/true, {}, {}});
  if (policies.empty())
    return success();
  Applier applier(ctx, std::move(policies));
  applier.run();
  if (*report_)
    applier.report();
  return success();
}

} // namespace

std::unique_ptr<pass::Pass> createApplyPoliciesPass() { return std::make_unique<ApplyPolicies>(); }

} // namespace hlotag::passes
