// SPDX-License-Identifier: Apache-2.0
#include "analysis/marks.h"
#include "hlotag/analysis/entries.h"
#include "hlotag/pass/pass.h"
#include "hlotag/passes/passes.h"

#include <string>
#include <vector>

namespace hlotag::passes {

namespace {

using namespace pass;

class Verify final : public PassBase<Verify> {
public:
  static const PassInfo &staticInfo();
  LogicalResult run(PassContext &ctx) override;
};

const PassInfo &Verify::staticInfo() {
  static const PassInfo info{"hlotag-verify", "HlotagVerify",
                             "Check the tags, and remove what hlotag keeps in flight",
                             R"(Meant as the last pass. It fails when

- the frontend attributes of an operation are no dictionary, or a value in them is neither a string
  nor a bool: XLA drops such entries without a word;
- a key has hlotag's reserved prefix `hlotag.`;
- a location still has a mark, or the module `hlotag.tags`: `hlotag-resolve` did not run.

It removes `hlotag.attached` and `hlotag.derived` from all operations, and entries `["hlotag.unset"]`,
by which inner scopes keep a key off that outer ones set. It changes nothing else; `hlotag.origins`, which
`--debug-origins` makes, stays for who reads it.

Before:

```mlir
%0 = stablehlo.sine %x {hlotag.attached = {k = "v"}, mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
```

After:

```mlir
%0 = stablehlo.sine %x {mhlo.frontend_attributes = {k = "v"}} : tensor<f32>
```)"};
  return info;
}

class Verifier {
public:
  explicit Verifier(PassContext &ctx)
      : ctx_(ctx), derived_(ir::Identifier::get(ctx.context(), analysis::kDerived)),
        anyAttached_(ctx.tags().anyAttached(ctx.module())) {}

  LogicalResult run() {
    if (ctx_.module().hasAttr(ctx_.ids().tags.str()))
      report(ctx_.module(), "the module still has 'hlotag.tags'; run hlotag-resolve first");
    ir::walk(ctx_.module(), [&](ir::Operation op) {
      visit(op);
      return numErrors_ < kMaxErrors ? ir::WalkResult::Advance : ir::WalkResult::Interrupt;
    });
    return numErrors_ == 0 ? success() : failure();
  }

private:
  /// What one mistake makes of a large module should still be readable.
  static constexpr size_t kMaxErrors = 10;

  void report(ir::Operation op, const std::string &message) {
    (void)ctx_.emitError(op, "'" + std::string(op.name().str()) + "' " + message);
    ++numErrors_;
  }

  void visit(ir::Operation op);
  struct Checked {
    std::string mistake;      ///< empty if the dictionary is fine
    ir::DictionaryAttr final; ///< without unset entries; null if nothing is left
  };
  const Checked &check(ir::Attribute attr);
  Checked checkUncached(ir::Attribute attr);
  /// Whether the name of `root`, or of a location in it, has a mark.
  bool isMarked(ir::Location root);

  PassContext &ctx_;
  ir::Identifier derived_;
  bool anyAttached_;
  size_t numErrors_ = 0;
  ir::PointerMap<Checked> entries_;
  ir::PointerMap<bool> marked_;
  std::vector<ir::Location> pending_;
};

void Verifier::visit(ir::Operation op) {
  if (ir::Attribute entries = op.attr(ctx_.ids().frontendAttributes.str())) {
    const Checked &checked = check(entries);
    if (!checked.mistake.empty())
      report(op, checked.mistake);
    else if (checked.final != entries)
      ctx_.tags().set(op, checked.final);
  }
  if (anyAttached_ && op.hasAttr(ctx_.ids().attached.str())) {
    ctx_.rewriter().removeAttr(op, ctx_.ids().attached);
    ctx_.rewriter().removeAttr(op, derived_);
  }
  bool marked = isMarked(op.location());
  for (ir::Region region : op.regions())
    for (ir::Block block : region.blocks())
      for (ir::Value argument : block.arguments())
        marked |= isMarked(argument.location());
  if (marked)
    report(op, "the location still has a mark of hlotag's; run hlotag-resolve first");
}

const Verifier::Checked &Verifier::check(ir::Attribute attr) {
  auto [checked, isNew] = entries_.insert(attr.opaque());
  if (isNew)
    *checked = checkUncached(attr);
  return *checked;
}

Verifier::Checked Verifier::checkUncached(ir::Attribute attr) {
  std::string name = "'" + std::string(ctx_.ids().frontendAttributes.str()) + "'";
  ir::DictionaryAttr entries = ir::dynCast<ir::DictionaryAttr>(attr);
  if (!entries)
    return {name + " must be a dictionary, but is " + attr.str(), {}};
  std::vector<ir::NamedAttribute> kept;
  for (ir::NamedAttribute entry : entries) {
    std::string key(entry.name.str());
    if (ir::startsWith(key, ir::kReservedPrefix))
      return {"key '" + key + "' in " + name + ": the prefix 'hlotag.' is reserved", {}};
    if (ir::isUnset(entry.value))
      continue;
    if (!ir::isa<ir::StringAttr>(entry.value) &&
        !capi::fn().mlirAttributeIsABool(entry.value.raw()))
      return {"key '" + key + "' in " + name + " has the value " + entry.value.str() +
                  ", which XLA drops: it must be a string or a bool",
              {}};
    kept.push_back(entry);
  }
  if (intptr_t(kept.size()) == entries.size())
    return {"", entries};
  return {"", kept.empty() ? ir::DictionaryAttr() : ir::DictionaryAttr::get(ctx_.context(), kept)};
}

bool Verifier::isMarked(ir::Location root) {
  if (bool *known = marked_.find(root.opaque()))
    return *known;
  // Parts count as unmarked from the moment they are looked at. If one is not, the pass fails for
  // this location anyway, and need not name every other one that shares the part.
  pending_.assign(1, root);
  while (!pending_.empty()) {
    ir::Location loc = pending_.back();
    pending_.pop_back();
    auto [known, isNew] = marked_.insert(loc.opaque());
    if (!isNew && !*known)
      continue;
    auto name = ir::dynCast<ir::NameLoc>(loc);
    if (*known || (name && hasMark(name.name().str())))
      return *marked_.insert(root.opaque()).first = true;
    if (name) {
      pending_.push_back(name.child());
    } else if (auto call = ir::dynCast<ir::CallSiteLoc>(loc)) {
      pending_.push_back(call.caller());
      pending_.push_back(call.callee());
    } else if (auto fused = ir::dynCast<ir::FusedLoc>(loc)) {
      for (ir::Location part : fused.parts())
        pending_.push_back(part);
    }
  }
  return false;
}

LogicalResult Verify::run(PassContext &ctx) { return Verifier(ctx).run(); }

} // namespace

std::unique_ptr<pass::Pass> createVerifyPass() { return std::make_unique<Verify>(); }

} // namespace hlotag::passes
