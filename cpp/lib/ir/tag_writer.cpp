// SPDX-License-Identifier: Apache-2.0
#include "hlotag/ir/tag_writer.h"
#include "hlotag/ir/walk.h"

#include <algorithm>

namespace hlotag::ir {

bool isReservedKey(std::string_view key) {
  static constexpr std::string_view prefixes[] = {kReservedPrefix, "xla.sdy.", "composite."};
  static constexpr std::string_view keys[] = {
      "fingerprint_before_lhs", "arg_layout_modes",           "out_layout_modes",
      "arg_memory_spaces",      "out_memory_spaces",          "is_spmd_generated",
      "original_sharding",      "_xla_cse_safe_zero_operand", "xla.pdl_launch"};
  return std::any_of(std::begin(prefixes), std::end(prefixes),
                     [&](std::string_view prefix) { return startsWith(key, prefix); }) ||
         std::find(std::begin(keys), std::end(keys), key) != std::end(keys);
}

bool isUnset(Attribute value) {
  ArrayAttr list = dynCast<ArrayAttr>(value);
  if (!list || list.size() != 1)
    return false;
  StringAttr text = dynCast<StringAttr>(list[0]);
  return text && text.value() == "hlotag.unset";
}

TagWriter::TagWriter(Rewriter &rewriter)
    : rewriter_(rewriter),
      frontendAttributes_(Identifier::get(rewriter.context(), kFrontendAttributes)),
      attached_(Identifier::get(rewriter.context(), kAttached)) {}

DictionaryAttr TagWriter::dictionary(Operation op, Identifier name) const {
  Attribute attr = op.attr(name.str());
  if (!attr)
    return {};
  if (DictionaryAttr entries = dynCast<DictionaryAttr>(attr))
    return entries;
  throw IRError(op.location().raw(), "attribute '" + std::string(name.str()) +
                                         "' must be a dictionary, but is " + attr.str());
}

bool TagWriter::anyAttached(Operation module) {
  if (anyAttached_)
    return *anyAttached_;
  anyAttached_ = false;
  walk(module, [&](Operation op) {
    *anyAttached_ = op.hasAttr(kAttached);
    return *anyAttached_ ? WalkResult::Interrupt : WalkResult::Advance;
  });
  return *anyAttached_;
}

bool TagWriter::addTo(Operation op, Identifier name, DictionaryAttr entries, bool overwrite) {
  if (!entries)
    return false;
  DictionaryAttr present = dictionary(op, name);
  DictionaryAttr wanted = merge(present, entries, overwrite);
  return rewriter_.replaceAttr(op, name, present, wanted);
}

bool TagWriter::set(Operation op, DictionaryAttr entries) {
  if (entries && entries.empty())
    entries = {};
  return rewriter_.replaceAttr(op, frontendAttributes_, get(op), entries);
}

DictionaryAttr TagWriter::merge(DictionaryAttr existing, DictionaryAttr entries, bool overwrite) {
  if (!entries || existing == entries)
    return existing;
  auto [slot, isNew] = merged_.try_emplace({existing.opaque(), entries.opaque(), overwrite});
  if (isNew)
    slot->second = mergeUncached(existing, entries, overwrite);
  return slot->second;
}

DictionaryAttr TagWriter::mergeUncached(DictionaryAttr existing, DictionaryAttr entries,
                                        bool overwrite) {
  if (entries.empty())
    return existing;
  if (!existing)
    return entries;
  std::vector<NamedAttribute> result;
  for (NamedAttribute entry : existing)
    if (!overwrite || !entries.lookup(entry.name.str()))
      result.push_back(entry);
  for (NamedAttribute entry : entries)
    if (overwrite || !existing.lookup(entry.name.str()))
      result.push_back(entry);
  return DictionaryAttr::get(rewriter_.context(), result);
}

} // namespace hlotag::ir
