// SPDX-License-Identifier: Apache-2.0
#include "hlotag/analysis/entries.h"

#include <algorithm>
#include <iterator>

namespace hlotag::analysis {

using ir::DictionaryAttr;
using ir::Identifier;
using ir::Operation;

bool EntryCarrier::isTaggable(Operation op, Identifier name) {
  auto [known, isNew] = taggable_.insert(name.opaque());
  if (isNew)
    *known = !ids_.is(name, ir::kUntaggable) && op.block().terminator() != op;
  return *known;
}

Carried EntryCarrier::entriesOf(Operation op) {
  DictionaryAttr all = selectCarried(tags_.get(op));
  if (!all)
    return {};
  DictionaryAttr attached = intersect(tags_.getAttached(op), all);
  return {all, attached, attached ? ir::TagWriter::dictionary(op, kDerived) : DictionaryAttr()};
}

bool EntryCarrier::give(Operation op, const Carried &entries, const ir::Reason &reason) {
  if (!entries)
    return false;
  DictionaryAttr present = tags_.get(op);
  if (!tags_.add(op, entries.all, reason))
    return false;
  // Read in any case, so that a malformed attribute fails this pass and not the next.
  DictionaryAttr attached = tags_.getAttached(op);
  // Record only new entries as attached: `op` may have had some of the keys.
  DictionaryAttr added = entries.attached ? remove(entries.attached, present) : DictionaryAttr();
  if (!added)
    return true;
  tags_.addAttached(op, added);
  DictionaryAttr own = ir::TagWriter::dictionary(op, kDerived);
  if (DictionaryAttr derived = mergeDerived({present, attached, own}, entries))
    setDerived(op, derived);
  return true;
}

DictionaryAttr EntryCarrier::mergeDerived(const Carried &own, const Carried &entries) {
  if (!own.derived && !entries.derived)
    return {};
  // Entries that lost to one that was there before have no derivatives.
  DictionaryAttr lost = selectSharedKeys(entries.attached, own.all);
  DictionaryAttr more = remove(entries.derived ? entries.derived : entries.attached, lost);
  DictionaryAttr derived = tags_.merge(own.derived ? own.derived : own.attached, more);
  return derived ? derived : DictionaryAttr::get(context_, {});
}

Carried EntryCarrier::merge(const Carried &own, const Carried &entries) {
  if (!entries)
    return own;
  if (!own)
    return entries;
  return {tags_.merge(own.all, entries.all),
          tags_.merge(own.attached, remove(entries.attached, own.all)), mergeDerived(own, entries)};
}

DictionaryAttr EntryCarrier::selectCarried(DictionaryAttr dictionary) {
  return filter(Filter::Carried, dictionary, {});
}
DictionaryAttr EntryCarrier::intersect(DictionaryAttr a, DictionaryAttr b) {
  return a == b ? a : filter(Filter::Common, a, b);
}
DictionaryAttr EntryCarrier::selectSharedKeys(DictionaryAttr a, DictionaryAttr b) {
  return a == b ? a : filter(Filter::SharedKeys, a, b);
}
DictionaryAttr EntryCarrier::remove(DictionaryAttr a, DictionaryAttr b) {
  if (a && !b)
    return a.empty() ? DictionaryAttr() : a;
  return filter(Filter::Without, a, b);
}

DictionaryAttr EntryCarrier::filter(Filter kind, DictionaryAttr a, DictionaryAttr b) {
  if (!a || (kind != Filter::Carried && !b))
    return {};
  std::vector<ir::NamedAttribute> kept;
  for (ir::NamedAttribute entry : a) {
    std::string_view key = entry.name.str();
    bool keep = kind == Filter::Carried      ? ir::isCarriedKey(key) && !ir::isUnset(entry.value)
                : kind == Filter::Common     ? b.lookup(key) == entry.value
                : kind == Filter::SharedKeys ? bool(b.lookup(key))
                                             : !b.lookup(key);
    if (keep)
      kept.push_back(entry);
  }
  if (kept.size() == size_t(a.size()))
    return a;
  return kept.empty() ? DictionaryAttr() : DictionaryAttr::get(context_, kept);
}

} // namespace hlotag::analysis
