// SPDX-License-Identifier: Apache-2.0
#include "analysis/equations.h"
#include "analysis/marks.h"
#include "hlotag/analysis/provenance.h"
#include "hlotag/ir/walk.h"
#include "hlotag/pass/pass.h"
#include "hlotag/passes/passes.h"
#include "transforms/phase_split.h"

#include <algorithm>
#include <map>
#include <optional>

namespace hlotag::passes {

namespace {

using namespace pass;

class Resolve final : public PassBase<Resolve> {
public:
  static const PassInfo &staticInfo();
  LogicalResult run(PassContext &ctx) override;
};

const PassInfo &Resolve::staticInfo() {
  static const PassInfo info{
      "hlotag-resolve", "HlotagResolve", "Turn the marks in locations into frontend attributes",
      R"(While JAX lowers a tagged equation, hlotag leaves a *mark* in the name of every location: the escape
character 1, `hlotag#`, an index into the module's `hlotag.tags`, and the escape character again. It is an element of
the name, or stands before the text of one.

- **Entries.** Each operation whose location has marks, at any depth, gets the entries of those tags in
  `mhlo.frontend_attributes`: `derived` if it is transposed, by its own name or by those of all calls of its function,
  else `forward`. A key that only `forward` has is recorded on derived operations as taken away, `["hlotag.unset"]`,
  until `hlotag-verify`.
- **Precedence.** The inner mark wins over the outer: in a name from left to right, a callee over its caller, a name
  over the location that it wraps. An entry that the operation already has wins over both.
- **Identities.** After the index a mark may list for which operations of the program its equation was traced,
  outermost first: `hlotag#0:3o.5`. Later passes of the pipeline know them.
- **Removal.** Marks leave all locations, those of block arguments included, and `hlotag.tags` leaves the module.

Modules, functions and terminators get no entries. A module without `hlotag.tags` stays unchanged: text that looks like
a mark is then a user's. Lowering escapes such text in a program that has marks: `\01%28` stands for `(`, and
`hlotag-verify` replaces it.

Before:

```mlir
module attributes {hlotag.tags = [{forward = {k = "v"}, derived = {k = "w"}}]} {
  func.func @main(%x: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.sine %x : tensor<f32> loc("jit(f)/jvp(\01hlotag#0\01)/sin")
    %1 = stablehlo.negate %0 : tensor<f32> loc("jit(f)/transpose(jvp(\01hlotag#0\01))/neg")
    return %1 : tensor<f32>
  }
}
```

After:

```mlir
module {
  func.func @main(%x: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.sine %x {mhlo.frontend_attributes = {k = "v"}} : tensor<f32> loc("jit(f)/jvp()/sin")
    %1 = stablehlo.negate %0 {mhlo.frontend_attributes = {k = "w"}} : tensor<f32> loc("jit(f)/transpose(jvp())/neg")
    return %1 : tensor<f32>
  }
}
```)"};
  return info;
}

/// One element of `hlotag.tags`; null for no entries.
struct Tag {
  ir::DictionaryAttr forward;
  ir::DictionaryAttr derived;
};

/// A location without its marks, and their entries. Computed once per distinct location.
struct Resolved {
  ir::Location stripped;      ///< the location itself if it has no mark
  ir::DictionaryAttr forward; ///< null for none
  ir::DictionaryAttr derived; ///< null for none
  ir::Identities::Id identity = ir::Identities::kNone;
};

class LocationResolver {
public:
  LocationResolver(PassContext &ctx, std::vector<Tag> tags) : ctx_(ctx), tags_(std::move(tags)) {}

  /// Throws IRError for a mark that cannot be resolved.
  const Resolved &resolve(ir::Location root) {
    return resolved_.of(root, [&](ir::Location loc) { return compute(loc); });
  }
  /// Returns whether an operation at `loc` gets other entries in the backward pass.
  bool dependsOnPhase(ir::Location loc) {
    const Resolved &resolved = resolve(loc);
    return resolved.forward != resolved.derived;
  }

private:
  Resolved compute(ir::Location loc);
  Resolved resolveName(ir::NameLoc loc, const Resolved &child);
  ir::DictionaryAttr entriesOf(ir::Location loc, const std::vector<size_t> &marks,
                               ir::DictionaryAttr Tag::*phase);

  PassContext &ctx_;
  std::vector<Tag> tags_;
  ir::LocationMap<Resolved> resolved_;
};

Resolved LocationResolver::compute(ir::Location loc) {
  if (auto name = ir::dynCast<ir::NameLoc>(loc))
    return resolveName(name, resolved_.at(name.child()));
  Resolved result{loc, {}, {}};
  std::vector<ir::Location> parts = ir::partsOf(loc);
  bool isMarked = false;
  for (ir::Location &part : parts) {
    const Resolved &inner = resolved_.at(part);
    result.forward = ctx_.tags().merge(result.forward, inner.forward);
    result.derived = ctx_.tags().merge(result.derived, inner.derived);
    if (result.identity == ir::Identities::kNone)
      result.identity = inner.identity;
    isMarked |= inner.stripped != part;
    part = inner.stripped;
  }
  if (isMarked)
    result.stripped = ir::withParts(loc, parts);
  return result;
}

Resolved LocationResolver::resolveName(ir::NameLoc loc, const Resolved &child) {
  Resolved result{loc, child.forward, child.derived, child.identity};
  std::string_view name = loc.name().str();
  analysis::MarkedName parsed;
  if (analysis::parseMarks(name, parsed)) {
    if (!parsed.error.empty())
      throw ir::IRError(loc.raw(), parsed.error);
    result.forward = ctx_.tags().merge(entriesOf(loc, parsed.marks, &Tag::forward), child.forward);
    result.derived = ctx_.tags().merge(entriesOf(loc, parsed.marks, &Tag::derived), child.derived);
    if (!parsed.chain.empty())
      result.identity = ctx_.identities().intern(parsed.chain);
    name = parsed.stripped;
  } else if (child.stripped == loc.child()) {
    return result;
  }
  result.stripped = name.empty() ? child.stripped : ir::NameLoc::get(name, child.stripped);
  return result;
}

ir::DictionaryAttr LocationResolver::entriesOf(ir::Location loc, const std::vector<size_t> &marks,
                                               ir::DictionaryAttr Tag::*phase) {
  ir::DictionaryAttr entries;
  for (auto mark = marks.rbegin(); mark != marks.rend(); ++mark) {
    if (*mark >= tags_.size())
      throw ir::IRError(loc.raw(), ir::concat({"mark 'hlotag#", std::to_string(*mark),
                                               "' has no entry in '", ctx_.ids().tags.str(),
                                               "', which has ", std::to_string(tags_.size())}));
    ir::DictionaryAttr outer = tags_[*mark].*phase;
    entries = entries ? ctx_.tags().merge(entries, outer) : outer;
  }
  return entries;
}

/// Reads `hlotag.tags`. Reports malformed elements.
class TagReader {
public:
  explicit TagReader(PassContext &ctx) : ctx_(ctx) {}

  bool read(ir::Attribute attr, std::vector<Tag> &tags) {
    auto list = ir::dynCast<ir::ArrayAttr>(attr);
    if (!list)
      return fail("must be an array of dictionaries, but is " + attr.str());
    for (intptr_t i = 0; i < list.size(); ++i) {
      tags.emplace_back();
      if (!readTag(list[i], "element " + std::to_string(i), tags.back()))
        return false;
    }
    return true;
  }

private:
  bool fail(const std::string &what) {
    (void)ctx_.emitError(ctx_.module(), "attribute 'hlotag.tags' " + what);
    return false;
  }

  bool readTag(ir::Attribute attr, const std::string &where, Tag &tag) {
    auto entry = ir::dynCast<ir::DictionaryAttr>(attr);
    bool isPair = entry && entry.size() == 2 && entry.lookup("forward") && entry.lookup("derived");
    if (!isPair)
      return fail(ir::concat({"must hold dictionaries with 'forward' and 'derived', but ", where,
                              " is ", attr.str()}));
    if (!readEntries(entry.lookup("forward"), where + ".forward", tag.forward) ||
        !readEntries(entry.lookup("derived"), where + ".derived", tag.derived))
      return false;
    tag.derived = ctx_.tags().merge({}, ctx_.tags().merge(tag.derived, unset(tag.forward)));
    tag.forward = ctx_.tags().merge({}, tag.forward);
    return true;
  }

  /// Returns sentinels for the keys of `entries`, so that passes do not restore them.
  ir::DictionaryAttr unset(ir::DictionaryAttr entries) {
    std::vector<ir::NamedAttribute> result;
    for (ir::NamedAttribute entry : entries)
      result.push_back({entry.name, ir::unsetValue(ctx_.context())});
    return ir::DictionaryAttr::get(ctx_.context(), result);
  }

  bool readEntries(ir::Attribute attr, const std::string &where, ir::DictionaryAttr &entries) {
    entries = ir::dynCast<ir::DictionaryAttr>(attr);
    if (!entries)
      return fail(
          ir::concat({"must hold dictionaries of strings, but ", where, " is ", attr.str()}));
    for (ir::NamedAttribute entry : entries)
      if (!ir::isa<ir::StringAttr>(entry.value) && !ir::isUnset(entry.value))
        return fail(ir::concat(
            {"must hold strings, but ", where, ".", entry.name.str(), " is ", entry.value.str()}));
    return true;
  }

  PassContext &ctx_;
};

class Rewrite {
public:
  /// `provenance` may be null if no tag depends on the phase.
  Rewrite(PassContext &ctx, LocationResolver &locations, analysis::Provenance *provenance)
      : ctx_(ctx), locations_(locations), provenance_(provenance) {}

  void run() {
    for (const ir::OpList::Entry &entry : ctx_.operations())
      visit(entry);
    ctx_.rewriter().removeAttr(ctx_.module(), ctx_.ids().tags);
  }

private:
  void visit(const ir::OpList::Entry &entry) {
    ir::Location location = entry.op.location();
    const Resolved &resolved = locations_.resolve(location);
    if (resolved.stripped != location) {
      ctx_.identities().set(entry.op, resolved.identity);
      if (!ctx_.ids().isNeverTagged(entry.name))
        addEntries(entry.op, resolved);
      ctx_.rewriter().setLocation(entry.op, resolved.stripped);
    }
    if (!entry.hasRegions)
      return;
    for (ir::Region region : entry.op.regions())
      for (ir::Block block : region.blocks())
        for (ir::Value argument : block.arguments())
          ctx_.rewriter().setLocation(argument, locations_.resolve(argument.location()).stripped);
  }

  void addEntries(ir::Operation op, const Resolved &resolved) {
    bool isDerived = provenance_ && provenance_->isTransposed(op);
    if (ir::DictionaryAttr entries = isDerived ? resolved.derived : resolved.forward)
      ctx_.tags().add(
          op, entries,
          {isDerived ? "tag of the program, derived by autodiff" : "tag of the program"});
  }

  PassContext &ctx_;
  LocationResolver &locations_;
  analysis::Provenance *provenance_;
};

/// Writes `hlotag.equations`. Each path of a forward operation gets a number. A derived operation
/// gets the numbers of the forward paths that agree with its own.
class EquationRecorder {
public:
  EquationRecorder(PassContext &ctx, analysis::Provenance &provenance)
      : ctx_(ctx), provenance_(provenance), graph_(provenance.calls()),
        paths_(ctx.identities(), provenance),
        name_(ir::Identifier::get(ctx.context(), ir::kEquations)) {}

  void run() {
    // Number forward operations before looking up derived ones.
    for (bool isDerived : {false, true})
      for (size_t function = 0; function < graph_.functions().size(); ++function)
        ir::walk(graph_.functions()[function].op, [&](ir::Operation op) {
          if (provenance_.isTransposed(op) == isDerived)
            record(op, function, isDerived);
          return ir::WalkResult::Advance;
        });
  }

private:
  using Numbers = std::vector<std::pair<analysis::EquationPath, std::string>>;

  void record(ir::Operation op, size_t function, bool isDerived) {
    std::string numbers;
    for (const analysis::EquationPath &path :
         paths_.of(function, ctx_.identities().of(op), isDerived)) {
      if (path.numbers.empty())
        continue;
      Numbers &known = numbers_[path.numbers.back()];
      auto isIt = [&](const auto &other) { return other.first.numbers == path.numbers; };
      if (!isDerived && std::none_of(known.begin(), known.end(), isIt))
        known.emplace_back(path, std::to_string(next_++));
      for (const auto &[other, number] : known)
        if (isDerived ? path.agreesWith(other) : other.numbers == path.numbers)
          numbers += (numbers.empty() ? "" : ",") + number;
    }
    if (!numbers.empty())
      ctx_.rewriter().setAttr(op, name_, ir::StringAttr::get(ctx_.context(), numbers));
  }

  PassContext &ctx_;
  analysis::Provenance &provenance_;
  const analysis::CallGraph &graph_;
  analysis::EquationPaths paths_;
  ir::Identifier name_;
  std::map<uint32_t, Numbers> numbers_; // by the last number of their paths
  size_t next_ = 0;
};

LogicalResult Resolve::run(PassContext &ctx) {
  ir::Attribute attr = ctx.module().attr(ctx.ids().tags.str());
  if (!attr)
    return success();
  std::vector<Tag> tags;
  if (!TagReader(ctx).read(attr, tags))
    return failure();
  std::optional<analysis::Provenance> provenance;
  for (const Tag &tag : tags)
    if ((tag.forward != tag.derived || ctx.tags().recordsOrigins()) && !provenance)
      provenance.emplace(ctx.operations());
  LocationResolver locations(ctx, std::move(tags));
  // Without functions that both phases call, this reads only the calls.
  if (provenance && transforms::splitByPhase(ctx, *provenance, [&](ir::Operation op) {
        return locations.dependsOnPhase(op.location());
      }))
    provenance.emplace(ctx.operations());
  Rewrite(ctx, locations, provenance ? &*provenance : nullptr).run();
  if (ctx.tags().recordsOrigins() && !ctx.identities().empty()) {
    provenance.emplace(ctx.operations()); // The locations changed.
    EquationRecorder(ctx, *provenance).run();
  }
  return success();
}

} // namespace

std::unique_ptr<pass::Pass> createResolvePass() { return std::make_unique<Resolve>(); }

} // namespace hlotag::passes
