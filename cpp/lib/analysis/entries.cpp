// SPDX-License-Identifier: Apache-2.0
#include "hlotag/analysis/entries.h"

namespace hlotag::analysis {

using ir::DictionaryAttr;
using ir::NamedAttribute;

bool EntryCarrier::isTaggable(ir::Operation op, ir::Identifier name) {
  auto [known, isNew] = taggable_.insert(name.opaque());
  if (isNew)
    *known = !ids_.is(name, ir::kUntaggable) && op.block().terminator() != op;
  return *known;
}

template <class Predicate> DictionaryAttr EntryCarrier::filter(DictionaryAttr a, Predicate isKept) {
  if (!a)
    return {};
  std::vector<NamedAttribute> kept;
  for (NamedAttribute entry : a)
    if (isKept(entry))
      kept.push_back(entry);
  if (kept.empty())
    return {};
  return kept.size() == size_t(a.size()) ? a : DictionaryAttr::get(context_, kept);
}

DictionaryAttr EntryCarrier::selectCarried(DictionaryAttr dictionary) {
  return filter(dictionary, [](NamedAttribute entry) {
    return ir::isCarriedKey(entry.name.str()) && !ir::isUnset(entry.value);
  });
}

DictionaryAttr EntryCarrier::selectSharedKeys(DictionaryAttr a, DictionaryAttr b) {
  if (!b)
    return {};
  return filter(a, [&](NamedAttribute entry) { return bool(b.lookup(entry.name.str())); });
}

DictionaryAttr EntryCarrier::remove(DictionaryAttr a, DictionaryAttr b) {
  return filter(a, [&](NamedAttribute entry) { return !b || !b.lookup(entry.name.str()); });
}

} // namespace hlotag::analysis
