// SPDX-License-Identifier: Apache-2.0
#include "rules.h"
#include "scope_pattern.h"

#include "hlotag/analysis/name_path.h"
#include "hlotag/ir/keys.h"
#include "hlotag/ir/nesting.h"

#include <algorithm>

namespace hlotag::analysis {

using ir::globMatch;

namespace {

/// Anchors `pattern` at a `/`. Removes leading `**/`, which every pattern implies.
std::string anchored(std::string_view pattern) {
  while (ir::startsWith(pattern, "**/"))
    pattern.remove_prefix(3);
  return "*/" + std::string(pattern);
}

/// Returns whether `pattern` matches consecutive whole elements of the path.
bool matchesScope(std::string_view pattern, std::string_view scope) {
  if (hasNames(pattern))
    return !bindScope(pattern, scope).empty();
  while (pattern.size() > 3 && ir::endsWith(pattern, "/**"))
    pattern.remove_suffix(3);
  return globMatch(anchored(pattern) + "/*", "/" + std::string(scope) + "/");
}

bool matchesSource(const std::string &pattern, const Subject &subject) {
  if (subject.file.empty())
    return false;
  // The leading slash lets a pattern without a directory match the end of the path.
  std::string text = "/" + std::string(subject.file);
  auto matches = [&] {
    return globMatch(anchored(pattern), text) ||
           globMatch(pattern, std::string_view(text).substr(1));
  };
  if (matches())
    return true;
  text += ":" + std::to_string(subject.line);
  if (matches())
    return true;
  text += ":" + std::to_string(subject.column);
  return matches();
}

class RuleReader {
public:
  RuleReader(MlirContext context, size_t number, ir::Attribute attr)
      : context_(context), attr_(attr), number_(number) {}

  Rule read() {
    ir::DictionaryAttr fields = ir::dynCast<ir::DictionaryAttr>(attr_);
    if (!fields)
      throw RuleError(ir::concat(
          {"rule ", std::to_string(number_), " must be a dictionary, but is ", attr_.str()}));
    Rule rule{number_, {}, textWithoutPlace(fields), {}, {}, Phase::Both, {}, {}, {}};
    for (ir::NamedAttribute field : fields) {
      field_ = field.name.str();
      if (std::optional<std::string> *pattern = rule.patterns.field(field_)) {
        *pattern = pattern_(field.value);
      } else if (field_ == "unless") {
        rule.unless = clauses(field.value);
      } else if (field_ == "remat") {
        rule.remat = entries(field.value);
      } else if (field_ == "at") {
        rule.at = string(field.value);
      } else if (field_ == "phase") {
        rule.phase = phase(field.value);
      } else if (field_ == "attrs") {
        rule.attrs = entries(field.value);
      } else if (field_ == "grad") {
        rule.grad = entries(field.value);
      } else {
        throw RuleError(ir::concat(
            {"rule ", std::to_string(number_), " has an unknown field '", field_,
             "'; fields are op, scope, source, function, phase, attrs, grad, remat, unless"}));
      }
    }
    field_ = "attrs";
    if (!rule.attrs || rule.attrs.empty())
      fail("is missing or empty: give the entries to attach");
    // A rule for one phase gives nothing to derived operations of the other.
    if (!rule.grad)
      rule.grad = rule.phase == Phase::Forward ? ir::DictionaryAttr::get(context_, {}) : rule.attrs;
    if (!rule.remat)
      rule.remat = rule.grad;
    return rule;
  }

private:
  [[noreturn]] void fail(const std::string &what) {
    throw RuleError(
        ir::concat({"rule ", std::to_string(number_), ": field '", field_, "' ", what}));
  }

  std::string textWithoutPlace(ir::DictionaryAttr fields) const {
    std::vector<ir::NamedAttribute> rest;
    for (ir::NamedAttribute field : fields)
      if (field.name.str() != "at")
        rest.push_back(field);
    return ir::DictionaryAttr::get(context_, rest).str();
  }

  std::string pattern_(ir::Attribute attr) {
    std::string text = string(attr);
    if (text.empty())
      fail("must not be empty");
    return text;
  }

  std::vector<Patterns> clauses(ir::Attribute attr) {
    auto list = ir::dynCast<ir::ArrayAttr>(attr);
    std::vector<Patterns> result;
    for (intptr_t i = 0; list && i < list.size(); ++i) {
      auto fields = ir::dynCast<ir::DictionaryAttr>(list[i]);
      if (!fields)
        fail("must be an array of dictionaries of patterns, but is " + attr.str());
      Patterns &clause = result.emplace_back();
      for (ir::NamedAttribute field : fields) {
        std::optional<std::string> *pattern = clause.field(field.name.str());
        if (!pattern)
          fail(ir::concat({"has an unknown field '", field.name.str(),
                           "'; fields are op, scope, source, function"}));
        *pattern = pattern_(field.value);
      }
    }
    if (!list)
      fail("must be an array of dictionaries of patterns, but is " + attr.str());
    return result;
  }

  std::string string(ir::Attribute attr) {
    ir::StringAttr text = ir::dynCast<ir::StringAttr>(attr);
    if (!text)
      fail("must be a string, but is " + attr.str());
    return std::string(text.value());
  }

  Phase phase(ir::Attribute attr) {
    std::string text = string(attr);
    if (text == "forward")
      return Phase::Forward;
    if (text == "backward")
      return Phase::Backward;
    if (text != "both")
      fail("must be \"forward\", \"backward\" or \"both\", but is " + attr.str());
    return Phase::Both;
  }

  ir::DictionaryAttr entries(ir::Attribute attr) {
    ir::DictionaryAttr result = ir::dynCast<ir::DictionaryAttr>(attr);
    if (!result)
      fail("must be a dictionary, but is " + attr.str());
    for (ir::NamedAttribute entry : result) {
      std::string key(entry.name.str());
      if (ir::isReservedKey(key))
        fail(ir::concat({"has the key '", key, "', which is reserved"}));
      if (!ir::isa<ir::StringAttr>(entry.value) &&
          !capi::fn().mlirAttributeIsABool(entry.value.raw()))
        fail(ir::concat({"has the value ", entry.value.str(), " for '", key,
                         "': it must be a string or a bool"}));
    }
    return result;
  }

  MlirContext context_;
  ir::Attribute attr_;
  size_t number_;
  std::string_view field_;
};

} // namespace

bool matchesOp(std::string_view pattern, std::string_view name) {
  size_t dot = name.find('.');
  return globMatch(pattern, name) ||
         (dot != std::string_view::npos && globMatch(pattern, name.substr(dot + 1)));
}

bool isInBody(ir::Operation op, const ir::OpIds &ids) {
  for (op = op.parent(); op; op = op.parent()) {
    std::string_view name = op.name().str();
    bool isHlo = ir::startsWith(name, "stablehlo.") || ir::startsWith(name, "mhlo.");
    if (isHlo && !ids.is(op.name(), ir::kRunsEquations))
      return true;
    if (op.name() == ids.func)
      return false;
  }
  return false;
}

std::string Rule::name() const {
  return "rule " + std::to_string(number) + (at.empty() ? "" : " (" + at + ")");
}

std::string namedScopes(std::string_view path) {
  std::vector<std::string_view> scopes;
  for (std::string_view element : splitName(path)) {
    std::string_view outer = scopes.empty() ? std::string_view() : scopes.back();
    bool isLoop = outer == "while" && (element == "body" || element == "cond");
    bool isBranch =
        outer == "cond" && ir::startsWith(element, "branch_") && ir::endsWith(element, "_fun");
    if (isLoop || isBranch)
      scopes.pop_back();
    else
      scopes.push_back(element);
  }
  std::string joined;
  for (std::string_view scope : scopes)
    joined.append(joined.empty() ? "" : "/").append(scope);
  return joined;
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
         (!scope || matchesScope(*scope, subject.scope)) &&
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
                              std::string_view scope) const {
  Bindings bindings = patterns.scope ? bindScope(*patterns.scope, scope) : Bindings();
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
    throw RuleError(
        "rules are an MLIR array attribute of dictionaries; this text is nested deeper than any");
  ir::Attribute attr = capi::fn().mlirAttributeParseGet(context, ir::toRef(text));
  if (!attr)
    throw RuleError("rules must be an MLIR array attribute, and this does not parse: " +
                    std::string(text));
  ir::ArrayAttr list = ir::dynCast<ir::ArrayAttr>(attr);
  if (!list)
    throw RuleError("rules must be an array of dictionaries, but is " + attr.str());
  std::vector<Rule> rules;
  rules.reserve(size_t(list.size()));
  for (intptr_t i = 0; i < list.size(); ++i)
    rules.push_back(RuleReader(context, size_t(i) + 1, list[i]).read());
  return rules;
}

} // namespace hlotag::analysis
