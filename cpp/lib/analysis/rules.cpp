// SPDX-License-Identifier: Apache-2.0
#include "rules.h"
#include "field.h"

#include "hlotag/ir/keys.h"
#include "hlotag/ir/nesting.h"

#include <algorithm>

namespace hlotag::analysis {

namespace {

std::optional<Bindings> matchSource(const TextPattern &pattern, const Subject &subject) {
  if (subject.file.empty())
    return std::nullopt;
  return pattern.matchSource(subject.file, subject.line, subject.column);
}

/// Reads the pattern of a field, if it is one. Returns whether it is.
bool readPattern(Patterns &patterns, std::string_view name, const Field &field) {
  if (name != "op" && name != "scope" && name != "source" && name != "function")
    return false;
  std::string text = field.text();
  if (text.empty())
    field.fail("must not be empty");
  if (std::string why = whyNoPattern(text, name != "op"); !why.empty())
    field.fail(why);
  if (name == "op")
    patterns.op = text;
  else if (name == "scope")
    patterns.scope = text;
  else
    (name == "source" ? patterns.source : patterns.function).emplace(text);
  return true;
}

Patterns readPatterns(const Field &fields) {
  Patterns patterns;
  for (ir::NamedAttribute entry : fields.dictionary()) {
    Field field = fields[entry.name.str()];
    if (!readPattern(patterns, entry.name.str(), field))
      field.fail("is an unknown field; fields are op, scope, source, function");
  }
  return patterns;
}

Phase readPhase(const Field &field) {
  std::string text = field.text();
  if (text == "forward")
    return Phase::Forward;
  if (text == "backward")
    return Phase::Backward;
  if (text != "both")
    field.failUnless("\"forward\", \"backward\" or \"both\"");
  return Phase::Both;
}

ir::DictionaryAttr readEntries(const Field &field) {
  for (ir::NamedAttribute entry : field.dictionary())
    if (ir::isReservedKey(entry.name.str()))
      field[entry.name.str()].fail("has a key that is reserved");
  return field.entries();
}

std::string textWithoutPlace(MlirContext context, ir::DictionaryAttr fields) {
  std::vector<ir::NamedAttribute> rest;
  for (ir::NamedAttribute field : fields)
    if (field.name.str() != "at")
      rest.push_back(field);
  return ir::DictionaryAttr::get(context, rest).str();
}

Rule readRule(MlirContext context, const std::string &name, const Field &fields) {
  Rule rule{{name, textWithoutPlace(context, fields.dictionary())}};
  for (ir::NamedAttribute entry : fields.dictionary()) {
    std::string_view name = entry.name.str();
    Field field = fields[name];
    if (readPattern(rule.patterns, name, field))
      continue;
    if (name == "unless")
      for (const Field &clause : field.elements())
        rule.unless.push_back(readPatterns(clause));
    else if (name == "at")
      rule.name.name += " (" + field.text() + ")";
    else if (name == "phase")
      rule.phase = readPhase(field);
    else if (name == "attrs" || name == "grad" || name == "remat")
      (name == "attrs" ? rule.attrs : name == "grad" ? rule.grad : rule.remat) = readEntries(field);
    else
      field.fail("is an unknown field; fields are op, scope, source, function, phase, attrs, grad, "
                 "remat, unless");
  }
  if (!rule.attrs || rule.attrs.empty())
    fields["attrs"].fail("is missing or empty: give the entries to attach");
  // A rule for one phase gives nothing to derived operations of the other.
  if (!rule.grad)
    rule.grad = rule.phase == Phase::Forward ? ir::DictionaryAttr::get(context, {}) : rule.attrs;
  if (!rule.remat)
    rule.remat = rule.grad;
  return rule;
}

} // namespace

bool Patterns::match(const Subject &subject) const {
  return (!op || matchesOp(*op, subject.opName)) &&
         (!function || function->match(subject.function)) &&
         (!scope || subject.scopes.match(*scope, subject.scope)) &&
         (!source || matchSource(*source, subject));
}

bool Rule::mayMatch(std::string_view opName) const {
  return !patterns.op || matchesOp(*patterns.op, opName);
}

bool Rule::matches(const Subject &subject) const {
  if (phase != Phase::Both && (phase == Phase::Backward) != subject.isTransposed)
    return false;
  return matchesPatterns(subject);
}

bool Rule::matchesPatterns(const Subject &subject) const {
  return patterns.match(subject) &&
         std::none_of(unless.begin(), unless.end(),
                      [&](const Patterns &clause) { return clause.match(subject); });
}

ir::DictionaryAttr Rule::bind(MlirContext context, ir::DictionaryAttr entries,
                              const Subject &subject) const {
  Bindings bindings;
  auto add = [&](const Bindings *more) {
    if (more)
      bindings.insert(bindings.end(), more->begin(), more->end());
  };
  auto addMatch = [&](const std::optional<Bindings> &more) { add(more ? &*more : nullptr); };
  if (patterns.scope)
    add(subject.scopes.match(*patterns.scope, subject.scope));
  if (patterns.source)
    addMatch(matchSource(*patterns.source, subject));
  if (patterns.function)
    addMatch(patterns.function->match(subject.function));
  if (bindings.empty() || entries.empty())
    return entries;
  std::vector<ir::NamedAttribute> bound;
  for (ir::NamedAttribute entry : entries) {
    auto text = ir::dynCast<ir::StringAttr>(entry.value);
    ir::Attribute value = entry.value;
    if (text)
      value = ir::StringAttr::get(context, substitute(std::string(text.value()), bindings));
    bound.push_back({entry.name, value});
  }
  return ir::DictionaryAttr::get(context, bound);
}

std::vector<Rule> parseRules(MlirContext context, std::string_view text) {
  if (text.find_first_not_of(" \t\n") == std::string_view::npos)
    return {};
  if (ir::nestingDepth(text) > ir::kMaxAttributeDepth)
    throw ir::IRError(
        "rules are an MLIR array attribute of dictionaries; this text is nested deeper than any");
  ir::Attribute attr = capi::fn().mlirAttributeParseGet(context, ir::toRef(text));
  if (!attr)
    throw ir::IRError("rules must be an MLIR array attribute, and this does not parse: " +
                      std::string(text));
  std::vector<Rule> rules;
  for (const Field &fields : Field(attr, "rules").elements()) {
    std::string name = "rule " + std::to_string(rules.size() + 1);
    rules.push_back(readRule(context, name, fields.renamed(name)));
  }
  return rules;
}

} // namespace hlotag::analysis
