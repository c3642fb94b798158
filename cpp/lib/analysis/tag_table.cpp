// SPDX-License-Identifier: Apache-2.0
#include "tag_table.h"
#include "field.h"

#include <algorithm>
#include <charconv>

namespace hlotag::analysis {

namespace {

constexpr std::string_view kPhaseNames[kPhases] = {"forward", "custom", "derived", "remat"};

size_t readIndex(const Field &field, size_t end, std::string_view expected) {
  std::string digits = field.text();
  size_t index = end;
  const char *last = digits.data() + digits.size();
  auto [rest, status] = std::from_chars(digits.data(), last, index);
  if (status != std::errc() || rest != last || index >= end)
    field.failUnless(expected);
  return index;
}

/// Reads `forward`, `custom`, which is `forward` by default, `derived`, and `remat`, which is
/// `derived` by default.
Columns readColumns(const Field &fields) {
  Columns columns;
  for (size_t phase = 0; phase < kPhases; ++phase) {
    Field field = fields[kPhaseNames[phase]];
    bool isOptional = phase == Custom || phase == Remat;
    columns[phase] = field || !isOptional ? field.entries() : columns[phase - 1];
  }
  return columns;
}

RuleEntries readRule(const Field &fields, size_t numRules) {
  RuleEntries rule;
  rule.rule = readIndex(fields["rule"], numRules, "an index into 'hlotag.rules'");
  if (Field depth = fields["depth"])
    rule.depth = readIndex(depth, SIZE_MAX, "a number");
  if (Field op = fields["op"])
    rule.op = op.text();
  if (Field unless = fields["unless"])
    for (const Field &pattern : unless.elements())
      rule.unless.push_back(pattern.text());
  rule.entries = readColumns(fields);
  return rule;
}

Tag readTag(MlirContext context, ir::TagWriter &tags, const Field &fields, size_t numRules) {
  Tag tag;
  tag.own = readColumns(fields);
  for (size_t phase : {Derived, Remat})
    tag.own[phase] =
        tags.merge({}, tags.merge(tag.own[phase], ir::unset(context, tag.own[Forward])));
  for (size_t phase : {Forward, Custom})
    tag.own[phase] = tags.merge({}, tag.own[phase]);
  if (Field rules = fields["rules"])
    for (const Field &rule : rules.elements())
      tag.rules.push_back(readRule(rule, numRules));
  tag.all = tag.own;
  for (auto rule = tag.rules.rbegin(); rule != tag.rules.rend(); ++rule)
    if (!rule->op)
      for (size_t phase = 0; phase < kPhases; ++phase)
        tag.all[phase] = tags.merge(tag.all[phase], rule->entries[phase]);
  return tag;
}

} // namespace

bool RuleEntries::matches(std::string_view name) const {
  auto excludes = [&](const std::string &pattern) { return matchesOp(pattern, name); };
  return !op || (matchesOp(*op, name) && std::none_of(unless.begin(), unless.end(), excludes));
}

bool Tag::hasCustom() const {
  auto differs = [](const Columns &columns) { return columns[Custom] != columns[Forward]; };
  return differs(own) || std::any_of(rules.begin(), rules.end(), [&](const RuleEntries &rule) {
           return differs(rule.entries);
         });
}

Tag Tag::settled() const {
  Tag tag = *this;
  auto settle = [](Columns &columns) { columns[Forward] = columns[Custom] = columns[Derived]; };
  settle(tag.own);
  settle(tag.all);
  for (RuleEntries &rule : tag.rules)
    settle(rule.entries);
  return tag;
}

TagTable readTagTable(MlirContext context, ir::Operation module, ir::TagWriter &tags) {
  TagTable table;
  if (Field rules{module.attr("hlotag.rules"), "hlotag.rules"})
    for (const Field &rule : rules.elements())
      table.rules.push_back({rule["name"].text(), rule["text"].text()});
  for (const Field &tag : Field(module.attr("hlotag.tags"), "hlotag.tags").elements())
    table.tags.push_back(readTag(context, tags, tag, table.rules.size()));
  return table;
}

} // namespace hlotag::analysis
