// SPDX-License-Identifier: Apache-2.0
#include "rules.h"
#include "field.h"

#include "hlotag/ir/keys.h"
#include "hlotag/ir/nesting.h"

#include <algorithm>

namespace hlotag::analysis {

using ir::globMatch;

namespace {

/// Anchors `pattern` at a `/`. Removes leading `**/`, which every pattern implies.
std::string anchor(std::string_view pattern) {
  while (ir::startsWith(pattern, "**/"))
    pattern.remove_prefix(3);
  return "*/" + std::string(pattern);
}

bool matchesSource(const std::string &pattern, const Subject &subject) {
  if (subject.file.empty())
    return false;
  // The leading slash lets a pattern without a directory match the end of the path.
  std::string text = "/" + std::string(subject.file);
  auto matches = [&] {
    return globMatch(anchor(pattern), text) || globMatch(pattern, std::string_view(text).substr(1));
  };
  if (matches())
    return true;
  text += ":" + std::to_string(subject.line);
  if (matches())
    return true;
  text += ":" + std::to_string(subject.column);
  return matches();
}

std::string readPattern(const Field &field) {
  std::string text = field.text();
  if (text.empty())
    field.fail("must not be empty");
  return text;
}

Patterns readPatterns(const Field &fields) {
  Patterns patterns;
  for (ir::NamedAttribute entry : fields.dictionary()) {
    Field field = fields[entry.name.str()];
    if (std::optional<std::string> *pattern = patterns.field(entry.name.str()))
      *pattern = readPattern(field);
    else
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
    if (std::optional<std::string> *pattern = rule.patterns.field(name))
      *pattern = readPattern(field);
    else if (name == "unless")
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

bool matchesOp(std::string_view pattern, std::string_view name) {
  size_t dot = name.find('.');
  return globMatch(pattern, name) ||
         (dot != std::string_view::npos && globMatch(pattern, name.substr(dot + 1)));
}

std::optional<std::string> *Patterns::field(std::string_view name) {
  return name == "op"         ? &op
         : name == "scope"    ? &scope
         : name == "source"   ? &source
         : name == "function" ? &function
                              : nullptr;
}

bool Patterns::match(const Subject &subject) const {
  return (!op || matchesOp(*op, subject.opName)) &&
         (!function || globMatch(*function, subject.function)) &&
         (!scope || subject.scopes.match(*scope, subject.scope)) &&
         (!source || matchesSource(*source, subject));
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
  const Bindings *bindings =
      patterns.scope ? subject.scopes.match(*patterns.scope, subject.scope) : nullptr;
  if (!bindings || bindings->empty() || entries.empty())
    return entries;
  std::vector<ir::NamedAttribute> bound;
  for (ir::NamedAttribute entry : entries) {
    auto text = ir::dynCast<ir::StringAttr>(entry.value);
    ir::Attribute value = entry.value;
    if (text)
      value = ir::StringAttr::get(context, substitute(std::string(text.value()), *bindings));
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
