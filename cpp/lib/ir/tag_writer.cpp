// SPDX-License-Identifier: Apache-2.0
#include "hlotag/ir/tag_writer.h"

namespace hlotag::ir {

TagWriter::TagWriter(Rewriter &rewriter)
    : rewriter_(rewriter),
      frontendAttributes_(Identifier::get(rewriter.context(), kFrontendAttributes)),
      origins_(Identifier::get(rewriter.context(), kOrigins)) {}

DictionaryAttr TagWriter::dictionary(Operation op, std::string_view name) {
  Attribute attr = op.attr(name);
  if (!attr)
    return {};
  if (DictionaryAttr entries = dynCast<DictionaryAttr>(attr))
    return entries;
  throw IRError(concat({"attribute '", name, "' must be a dictionary, but is ", attr.str()}),
                op.location().raw());
}

bool TagWriter::add(Operation op, DictionaryAttr entries, const Reason &reason) {
  DictionaryAttr before = get(op);
  bool changed = rewriter_.setAttr(op, frontendAttributes_, merge(before, entries));
  if (changed && recordsOrigins())
    updateOrigins(op, before, get(op), reason);
  return changed;
}

bool TagWriter::set(Operation op, DictionaryAttr entries) {
  if (entries && entries.empty())
    entries = {};
  DictionaryAttr before = get(op);
  bool changed = rewriter_.setAttr(op, frontendAttributes_, entries);
  // A record of an earlier run goes when its entry goes.
  if (changed && (recordsOrigins() || op.hasAttr(kOrigins)))
    updateOrigins(op, before, entries, {});
  return changed;
}

void TagWriter::updateOrigins(Operation op, DictionaryAttr before, DictionaryAttr after,
                              const Reason &reason) {
  auto isNew = [&](NamedAttribute entry) {
    return !before || before.lookup(entry.name.str()) != entry.value;
  };
  DictionaryAttr present = dictionary(op, kOrigins);
  std::vector<NamedAttribute> records;
  if (after) {
    for (NamedAttribute entry : after) {
      Attribute former = present ? present.lookup(entry.name.str()) : Attribute();
      if (!isNew(entry) && former)
        records.push_back({entry.name, former});
      else if (isNew(entry) && recordsOrigins())
        records.push_back({entry.name, record(reason)});
    }
  }
  DictionaryAttr wanted =
      records.empty() ? DictionaryAttr() : DictionaryAttr::get(rewriter_.context(), records);
  rewriter_.setAttr(op, origins_, wanted);
}

DictionaryAttr TagWriter::record(const Reason &reason) {
  std::vector<NamedAttribute> fields;
  auto say = [&](std::string_view name, std::string_view text) {
    MlirContext context = rewriter_.context();
    fields.push_back({Identifier::get(context, name), StringAttr::get(context, text)});
  };
  say("pass", recordedPass_);
  if (!reason.step.empty())
    say("step", reason.step);
  if (reason.from)
    say("from", concat({reason.from.name().str(), " at ", render(reason.from.location())}));
  if (reason.isInferred)
    say("confidence", "1.00");
  return DictionaryAttr::get(rewriter_.context(), fields);
}

DictionaryAttr TagWriter::merge(DictionaryAttr existing, DictionaryAttr entries) {
  if (!entries || entries.empty() || existing == entries)
    return existing;
  if (!existing)
    return entries;
  std::vector<NamedAttribute> result;
  for (NamedAttribute entry : existing)
    result.push_back(entry);
  for (NamedAttribute entry : entries)
    if (!existing.lookup(entry.name.str()))
      result.push_back(entry);
  // Avoids a look-up in MLIR: the dictionary with all entries exists.
  bool isAll = result.size() == size_t(existing.size());
  return isAll ? existing : DictionaryAttr::get(rewriter_.context(), result);
}

} // namespace hlotag::ir
