// SPDX-License-Identifier: Apache-2.0
#include "hlotag/derivation/derivation.h"

#include "transposition.h"

#include <algorithm>
#include <set>

namespace hlotag::derivation {
namespace {

using namespace ir;

/// Collects the primals of each operation. An operation of a function with several calls has one
/// equation for each call.
class Derivations {
public:
  Derivations(const OpList &operations, analysis::Provenance &provenance)
      : table_(provenance), equations_(operations, provenance, table_),
        transposition_(equations_, table_), ids_(operations[0].op.context()),
        provenance_(provenance) {
    collectPrimals();
    for (EquationId id = 0; id < all().size(); ++id)
      deriveEquation(id);
    deriveSites();
    deriveLoops();
  }

  void visit(const OpList &operations, const std::function<void(const Derivation &)> &visit) const {
    for (const OpList::Entry &entry : operations) {
      const Found *found = found_.find(entry.op.opaque());
      if (!found || found->isUnknown)
        continue;
      Derivation derivation{entry.op, {}};
      for (uint32_t primal : found->primals)
        derivation.primals.push_back(&primals_[primal]);
      visit(derivation);
      bool isSite = entry.name == ids_.whileOp || entry.name == ids_.caseOp ||
                    entry.name == ids_.ifOp || entry.name == ids_.funcCall ||
                    entry.name.str() == "sdy.manual_computation";
      // The body of a reduction has the reduction's primals.
      if (entry.hasRegions && !isSite && !found->isCopy)
        for (Region region : entry.op.regions())
          for (Operation inner : region.firstBlock().operations()) {
            derivation.derived = inner;
            visit(derivation);
          }
    }
  }

private:
  struct Found {
    std::vector<uint32_t> primals; ///< indices in `primals_`
    bool isUnknown = false, isCopy = false;
  };

  const std::vector<Equation> &all() const { return equations_.equations; }
  const std::vector<Site> &sites() const { return equations_.sites; }

  uint32_t add(Operations operations) {
    primals_.push_back(std::move(operations));
    return uint32_t(primals_.size() - 1);
  }

  /// Makes a list of operations for each original equation, with its residuals.
  void collectPrimals() {
    for (EquationId id = 0; id < all().size(); ++id) {
      if (all()[id].isDerived || all()[id].isCopy)
        continue;
      *primalOfOriginal_.insert(id).first = add(all()[id].ops);
    }
    for (EquationId id = 0; id < all().size(); ++id) {
      if (all()[id].isDerived || all()[id].isCopy)
        continue;
      std::vector<PrimalId> owners = transposition_.ownersOf(id);
      if (owners.size() != 1)
        continue;
      for (EquationId original : transposition_.primal(owners[0]).originals)
        if (all()[original].site == all()[id].site) {
          Operations &members = primals_[*primalOfOriginal_.find(original)];
          members.insert(members.end(), all()[id].ops.begin(), all()[id].ops.end());
        }
    }
  }

  void record(Operation op, const std::vector<uint32_t> &primals) {
    auto [found, isNew] = found_.insert(op.opaque());
    if (primals.empty() || (!isNew && found->primals != primals && !merge(*found, primals)))
      found->isUnknown = true;
    if (isNew)
      found->primals = primals;
  }

  /// Returns whether both lists name the same operations. Each call of a function has equations of
  /// its own, but all share the function's operations.
  bool merge(Found &found, const std::vector<uint32_t> &primals) {
    return found.primals.size() == 1 && primals.size() == 1 &&
           primals_[found.primals[0]] == primals_[primals[0]];
  }

  void deriveEquation(EquationId id) {
    const Equation &equation = all()[id];
    if (!equation.isDerived && !equation.isCopy)
      return;
    std::vector<EquationId> originals =
        equation.isBeyondTable ? std::vector<EquationId>() : originalsOf(id);
    std::vector<uint32_t> primals;
    primals.reserve(originals.size());
    for (EquationId original : originals)
      primals.push_back(*primalOfOriginal_.find(original));
    std::sort(primals.begin(), primals.end());
    for (Operation op : equation.ops) {
      record(op, primals);
      found_.find(op.opaque())->isCopy |= equation.isCopy;
    }
    if (primals.size() == 1)
      for (EquationId original : originals)
        matchSites(equation.site, all()[original].site);
  }

  /// Returns the original equations that a derived equation or a copy may stem from; empty if they
  /// are not all known.
  std::vector<EquationId> originalsOf(EquationId id) const {
    bool isCopy = all()[id].isCopy;
    auto ofPrimal = [&](PrimalId primal) { return transposition_.primal(primal).originals; };
    if (isCopy)
      if (std::vector<EquationId> own = ofPrimal(transposition_.primalOf(id)); !own.empty())
        return own;
    if (std::optional<EquationId> residual = transposition_.residualOf(id))
      return ofPrimal(transposition_.primalOf(*residual));
    if (!isCopy && !transposition_.isLive(id))
      return {};
    std::vector<EquationId> originals;
    for (PrimalId owner : transposition_.ownersOf(id)) {
      std::vector<EquationId> own = ofPrimal(owner);
      if (own.empty())
        return {};
      originals.insert(originals.end(), own.begin(), own.end());
    }
    return originals;
  }

  /// Matches the calls, loops and conditionals around a derived equation with those around its
  /// primal, outermost first.
  void matchSites(SiteId derived, SiteId primal) {
    std::vector<SiteId> inner, outer;
    for (; derived != kNone; derived = sites()[derived].parent)
      inner.push_back(derived);
    for (; primal != kNone; primal = sites()[primal].parent)
      outer.push_back(primal);
    for (size_t i = 1; i <= inner.size() && i <= outer.size(); ++i) {
      SiteId from = inner[inner.size() - i], to = outer[outer.size() - i];
      if (from != to && sites()[from].op.name() == sites()[to].op.name())
        siteOrigins_[from].insert(to);
    }
  }

  /// Equal for sites with equal place and primitive.
  static uint64_t keyOf(const Site &site) { return uint64_t(site.place) << 32 | site.primitive; }

  void deriveSites() {
    for (SiteId id = 0; id < sites().size(); ++id)
      if (!sites()[id].isDerived && !sites()[id].isCopy)
        sitesAt_.insert(keyOf(sites()[id])).first->push_back(id);
    for (SiteId id = 0; id < sites().size(); ++id) {
      const Site &site = sites()[id];
      if ((!site.isDerived && !site.isCopy) || site.isBeyondTable)
        continue;
      std::set<SiteId> &origins = siteOrigins_[id];
      const std::vector<SiteId> *alike = sitesAt_.find(keyOf(site));
      if (origins.empty() && site.isDerived && alike && alike->size() == 1 &&
          sharesValue(site, sites()[alike->front()]))
        origins.insert(alike->front());
      if (origins.size() != 1)
        continue;
      SiteId origin = *origins.begin();
      // The call of a scan's body stands for the loop.
      SiteId loop = sites()[origin].parent;
      if (loop != kNone && sites()[loop].op.name() == ids_.whileOp &&
          site.op.name() == ids_.funcCall &&
          (isSlicing(id) || !startsWith(provenance_.text(site.primitive), "jit(")))
        origin = loop;
      if (!sites()[origin].isDerived && !sites()[origin].isCopy)
        record(site.op, {primalOfSite(origin)});
    }
  }

  /// Returns whether only derivatives use the value.
  bool isResidual(ValueId value) const {
    const std::vector<EquationId> &users = transposition_.usersOf(value);
    return equations_.values[value].op &&
           std::all_of(users.begin(), users.end(),
                       [&](EquationId id) { return all()[id].isDerived; });
  }

  bool sharesValue(const Site &derived, const Site &primal) const {
    if (primal.op.name() != derived.op.name())
      return false;
    return std::any_of(derived.ins.begin(), derived.ins.end(), [&](ValueId in) {
      return isResidual(in) &&
             std::find(primal.outs.begin(), primal.outs.end(), in) != primal.outs.end();
    });
  }

  uint32_t primalOfSite(SiteId id) {
    auto [known, isNew] = primalOfSite_.insert(id);
    if (isNew)
      *known = add({sites()[id].op});
    return *known;
  }

  /// Returns the loop that the loop `id` is derived from; kNone if unknown, or if `id` is no loop.
  SiteId originOfLoop(SiteId id) const {
    if (id == kNone || sites()[id].op.name() != ids_.whileOp || sites()[id].isBeyondTable)
      return kNone;
    auto found = siteOrigins_.find(id);
    return found == siteOrigins_.end() || found->second.size() != 1 ? kNone
                                                                    : *found->second.begin();
  }

  /// Derives the equations that run a loop: its counter, the slices of its operands, its initial
  /// zeros.
  void deriveLoops() {
    FlatMap<uint64_t, SiteId> fed; // by initial value: the loop
    for (SiteId id = 0; id < sites().size(); ++id)
      for (ValueId in : originOfLoop(id) == kNone ? std::vector<ValueId>() : sites()[id].ins)
        *fed.insert(in).first = id;
    for (const Equation &equation : all()) {
      if (!equation.isDerived && !equation.isCopy)
        continue;
      SiteId loop = isSlicing(equation.site) ? sites()[equation.site].parent : equation.site;
      SiteId origin = originOfLoop(loop);
      if (origin != kNone && (loop != equation.site || isAt(equation, sites()[loop]))) {
        recordUnknown(equation, primalOfSite(origin));
        continue;
      }
      const SiteId *started = equation.outs.empty() ? nullptr : fed.find(equation.outs[0]);
      if (started && isConstant(equation) && sites()[*started].place == equation.place)
        recordUnknown(equation, primalOfSite(originOfLoop(*started)));
    }
    for (SiteId id = 0; id < sites().size(); ++id) {
      SiteId origin = originOfLoop(sites()[id].parent);
      if (origin != kNone && isSlicing(id) && (sites()[id].isDerived || sites()[id].isCopy))
        replace(sites()[id].op, primalOfSite(origin));
    }
  }

  /// Returns whether the site is one of JAX's functions that slice the operands of a loop.
  bool isSlicing(SiteId id) const {
    return id != kNone && startsWith(provenance_.text(sites()[id].primitive), "jit(dynamic_");
  }

  bool isAt(const Equation &equation, const Site &loop) const {
    return provenance_.of(equation.ops[0]).sourceKey == loop.sourceKey;
  }

  bool isConstant(const Equation &equation) const {
    return std::all_of(equation.ins.begin(), equation.ins.end(),
                       [&](ValueId in) { return equations_.values[in].isConstant; });
  }

  void recordUnknown(const Equation &equation, uint32_t primal) {
    for (Operation op : equation.ops)
      replace(op, primal);
  }
  /// Records `primal` for an operation without a known equation.
  void replace(Operation op, uint32_t primal) {
    auto [found, isNew] = found_.insert(op.opaque());
    if (isNew || found->primals.empty())
      *found = {{primal}};
    else if (found->primals != std::vector<uint32_t>{primal} && !merge(*found, {primal}))
      found->isUnknown |= primals_[found->primals[0]][0].name() == ids_.whileOp;
  }

  Table table_;
  Equations equations_;
  Transposition transposition_;
  OpIds ids_;
  analysis::Provenance &provenance_;
  std::vector<Operations> primals_;
  FlatMap<uint64_t, uint32_t> primalOfOriginal_, primalOfSite_;
  PointerMap<Found> found_;
  std::map<SiteId, std::set<SiteId>> siteOrigins_;
  FlatMap<uint64_t, std::vector<SiteId>> sitesAt_; ///< forward sites by `keyOf`
};

} // namespace

void findDerived(const OpList &operations, analysis::Provenance &provenance,
                 const std::function<void(const Derivation &)> &visit) {
  Derivations(operations, provenance).visit(operations, visit);
}

} // namespace hlotag::derivation
