// SPDX-License-Identifier: Apache-2.0
#include "tag_table.h"
#include "rules.h"

#include <algorithm>
#include <charconv>

namespace hlotag::analysis {

namespace {

constexpr std::string_view kPhaseNames[kPhases] = {"forward", "derived", "remat"};
constexpr std::string_view kRules = "hlotag.rules";

[[noreturn]] void fail(std::string_view attribute, const std::string &what) {
  throw TagTableError(ir::concat({"attribute '", attribute, "' ", what}));
}

std::vector<RuleName> readRuleNames(ir::Attribute attr) {
  std::vector<RuleName> names;
  if (!attr)
    return names;
  auto list = ir::dynCast<ir::ArrayAttr>(attr);
  for (intptr_t i = 0; list && i < list.size(); ++i) {
    auto fields = ir::dynCast<ir::DictionaryAttr>(list[i]);
    auto name = ir::dynCast<ir::StringAttr>(fields ? fields.lookup("name") : ir::Attribute());
    auto text = ir::dynCast<ir::StringAttr>(fields ? fields.lookup("text") : ir::Attribute());
    if (!name || !text)
      fail(kRules, "must hold dictionaries with 'name' and 'text', but is " + attr.str());
    names.push_back({std::string(name.value()), std::string(text.value())});
  }
  if (!list)
    fail(kRules, "must be an array of dictionaries, but is " + attr.str());
  return names;
}

class TagReader {
public:
  TagReader(MlirContext context, ir::TagWriter &tags, size_t numberOfRules)
      : context_(context), tags_(tags), numberOfRules_(numberOfRules) {}

  Tag read(ir::Attribute attr, const std::string &where) {
    auto fields = ir::dynCast<ir::DictionaryAttr>(attr);
    if (!hasEntries(fields))
      failAt(ir::concat({"must hold dictionaries with 'forward' and 'derived', but ", where, " is ",
                         attr.str()}));
    Tag tag;
    tag.own = readColumns(fields, where);
    for (size_t phase : {Derived, Remat})
      tag.own[phase] = tags_.merge({}, tags_.merge(tag.own[phase], unset(tag.own[Forward])));
    tag.own[Forward] = tags_.merge({}, tag.own[Forward]);
    if (ir::Attribute rules = fields.lookup("rules"))
      tag.rules = readRules(rules, where);
    tag.all = tag.own;
    for (auto rule = tag.rules.rbegin(); rule != tag.rules.rend(); ++rule)
      if (!rule->op)
        for (size_t phase = 0; phase < kPhases; ++phase)
          tag.all[phase] = tags_.merge(tag.all[phase], rule->entries[phase]);
    return tag;
  }

private:
  [[noreturn]] static void failAt(const std::string &what) { fail("hlotag.tags", what); }

  static bool hasEntries(ir::DictionaryAttr fields) {
    return fields && fields.lookup("forward") && fields.lookup("derived");
  }

  std::vector<RuleEntries> readRules(ir::Attribute attr, const std::string &where) {
    auto list = ir::dynCast<ir::ArrayAttr>(attr);
    if (!list)
      failAt(ir::concat({"must hold lists of rules, but ", where, ".rules is ", attr.str()}));
    std::vector<RuleEntries> rules;
    for (intptr_t i = 0; i < list.size(); ++i) {
      std::string place = ir::concat({where, ".rules[", std::to_string(i), "]"});
      auto fields = ir::dynCast<ir::DictionaryAttr>(list[i]);
      RuleEntries &rule = rules.emplace_back();
      if (!hasEntries(fields) || !readIndex(fields.lookup("rule"), rule.rule) ||
          !readPatterns(fields, rule))
        failAt(ir::concat({"must hold rules with 'rule', 'forward' and 'derived', but ", place,
                           " is ", list[i].str()}));
      rule.entries = readColumns(fields, place);
    }
    return rules;
  }

  bool readIndex(ir::Attribute attr, size_t &index) {
    auto text = ir::dynCast<ir::StringAttr>(attr);
    if (!text)
      return false;
    std::string_view digits = text.value();
    auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    return status == std::errc() && end == digits.data() + digits.size() && index < numberOfRules_;
  }

  static bool readPatterns(ir::DictionaryAttr fields, RuleEntries &rule) {
    if (ir::Attribute op = fields.lookup("op")) {
      auto pattern = ir::dynCast<ir::StringAttr>(op);
      if (!pattern)
        return false;
      rule.op = std::string(pattern.value());
    }
    ir::Attribute attr = fields.lookup("unless");
    auto unless = ir::dynCast<ir::ArrayAttr>(attr);
    for (intptr_t i = 0; unless && i < unless.size(); ++i) {
      auto pattern = ir::dynCast<ir::StringAttr>(unless[i]);
      if (!pattern)
        return false;
      rule.unless.emplace_back(pattern.value());
    }
    return !attr || unless;
  }

  /// Reads `forward`, `derived` and `remat`, which is `derived` by default.
  Columns readColumns(ir::DictionaryAttr fields, const std::string &where) {
    Columns columns;
    for (size_t phase = 0; phase < kPhases; ++phase) {
      std::string name(kPhaseNames[phase]);
      ir::Attribute attr = fields.lookup(name);
      columns[phase] = attr ? readEntries(attr, ir::concat({where, ".", name})) : columns[Derived];
    }
    return columns;
  }

  /// Returns sentinels for the keys of `entries`, so that passes do not restore them.
  ir::DictionaryAttr unset(ir::DictionaryAttr entries) {
    std::vector<ir::NamedAttribute> result;
    for (ir::NamedAttribute entry : entries)
      result.push_back({entry.name, ir::unsetValue(context_)});
    return ir::DictionaryAttr::get(context_, result);
  }

  static ir::DictionaryAttr readEntries(ir::Attribute attr, const std::string &where) {
    auto entries = ir::dynCast<ir::DictionaryAttr>(attr);
    if (!entries)
      failAt(ir::concat({"must hold dictionaries of strings, but ", where, " is ", attr.str()}));
    for (ir::NamedAttribute entry : entries)
      if (!ir::isa<ir::StringAttr>(entry.value) && !ir::isUnset(entry.value))
        failAt(ir::concat(
            {"must hold strings, but ", where, ".", entry.name.str(), " is ", entry.value.str()}));
    return entries;
  }

  MlirContext context_;
  ir::TagWriter &tags_;
  size_t numberOfRules_;
};

} // namespace

bool RuleEntries::matches(std::string_view name) const {
  auto excludes = [&](const std::string &pattern) { return matchesOp(pattern, name); };
  return !op || (matchesOp(*op, name) && std::none_of(unless.begin(), unless.end(), excludes));
}

TagTable readTagTable(MlirContext context, ir::Operation module, ir::TagWriter &tags) {
  TagTable table;
  table.rules = readRuleNames(module.attr(kRules));
  ir::Attribute attr = module.attr("hlotag.tags");
  auto list = ir::dynCast<ir::ArrayAttr>(attr);
  if (!list)
    fail("hlotag.tags", "must be an array of dictionaries, but is " + attr.str());
  TagReader reader(context, tags, table.rules.size());
  for (intptr_t i = 0; i < list.size(); ++i)
    table.tags.push_back(reader.read(list[i], "element " + std::to_string(i)));
  return table;
}

} // namespace hlotag::analysis
