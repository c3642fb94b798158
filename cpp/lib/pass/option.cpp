// SPDX-License-Identifier: Apache-2.0
#include "hlotag/pass/option.h"

#include <algorithm>
#include <charconv>
#include <locale>
#include <sstream>

namespace hlotag::pass {

bool detail::isSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

size_t detail::endOfQuoted(std::string_view text, size_t at) {
  char quote = text[at];
  for (size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == quote)
      return i + 1;
    if (quote == '"' && text[i] == '\\' && i + 1 < text.size() &&
        (text[i + 1] == '"' || text[i + 1] == '\\'))
      ++i;
  }
  return std::string_view::npos;
}

namespace {

using detail::endOfQuoted;
using detail::isSpace;

std::string_view trim(std::string_view text) {
  while (!text.empty() && isSpace(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && isSpace(text.back()))
    text.remove_suffix(1);
  return text;
}

bool isQuote(char c) { return c == '"' || c == '\''; }

bool isQuotedWhole(std::string_view text) {
  return text.size() >= 2 && isQuote(text.front()) && endOfQuoted(text, 0) == text.size();
}

bool isBracedWhole(std::string_view text) {
  return text.size() >= 2 && text.front() == '{' && text.back() == '}';
}

std::string unquote(std::string_view text) {
  bool escapes = text.front() == '"';
  std::string_view body = text.substr(1, text.size() - 2);
  std::string result;
  for (size_t i = 0; i < body.size(); ++i) {
    bool escaped = escapes && body[i] == '\\' && i + 1 < body.size() &&
                   (body[i + 1] == '"' || body[i + 1] == '\\');
    result += body[escaped ? ++i : i];
  }
  return result;
}

std::string quote(const std::string &value) {
  static constexpr std::string_view special = " \t\r\n\"'{}(),=";
  if (!value.empty() && value.find_first_of(special) == std::string::npos)
    return value;
  std::string result = "\"";
  for (size_t i = 0; i < value.size(); ++i) {
    char c = value[i];
    // Escape a backslash only where the parser would read an escape.
    bool ambiguous =
        c == '\\' && (i + 1 == value.size() || value[i + 1] == '"' || value[i + 1] == '\\');
    if (c == '"' || ambiguous)
      result += '\\';
    result += c;
  }
  return result + '"';
}

/// Splits at commas outside of quotes and braces.
std::vector<std::string_view> splitList(std::string_view text) {
  std::vector<std::string_view> parts;
  size_t start = 0;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (isQuote(text[i])) {
      size_t end = endOfQuoted(text, i);
      i = (end == std::string_view::npos ? text.size() : end) - 1;
    } else if (text[i] == '{') {
      ++depth;
    } else if (text[i] == '}') {
      --depth;
    } else if (text[i] == ',' && depth == 0) {
      parts.push_back(trim(text.substr(start, i - start)));
      start = i + 1;
    }
  }
  parts.push_back(trim(text.substr(std::min(start, text.size()))));
  return parts;
}

} // namespace

namespace detail {

std::string typeName(const bool &) { return "bool"; }
std::string typeName(const int64_t &) { return "int"; }
std::string typeName(const double &) { return "float"; }
std::string typeName(const std::string &) { return "string"; }
std::string typeName(const Strings &) { return "list of strings"; }

bool parseValue(std::string_view text, std::string &value) {
  text = trim(text);
  if (isQuotedWhole(text))
    value = unquote(text);
  else if (isBracedWhole(text))
    value = std::string(text.substr(1, text.size() - 2));
  else
    value = std::string(text);
  return true;
}

bool parseValue(std::string_view text, bool &value) {
  std::string word;
  parseValue(text, word);
  value = word == "true" || word == "1";
  return value || word == "false" || word == "0";
}

bool parseValue(std::string_view text, int64_t &value) {
  std::string word;
  parseValue(text, word);
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return !word.empty() && error == std::errc() && end == word.data() + word.size();
}

bool parseValue(std::string_view text, double &value) {
  std::string word;
  parseValue(text, word);
  // A stream with the C locale, because strtod uses the process's.
  std::istringstream in(word);
  in.imbue(std::locale::classic());
  in >> std::noskipws >> value;
  return !word.empty() && !in.fail() && in.peek() == std::istringstream::traits_type::eof();
}

bool parseValue(std::string_view text, Strings &value) {
  value.clear();
  text = trim(text);
  std::string whole;
  // As in MLIR, quotes around the whole list are for the tokenizer only.
  if (isQuotedWhole(text)) {
    whole = unquote(text);
    text = trim(whole);
  } else if (isBracedWhole(text)) {
    text = trim(text.substr(1, text.size() - 2));
  }
  if (text.empty())
    return true;
  for (std::string_view part : splitList(text)) {
    if (part.empty())
      return false;
    value.emplace_back();
    parseValue(part, value.back());
  }
  return true;
}

std::string printValue(const bool &value) { return value ? "true" : "false"; }
std::string printValue(const int64_t &value) { return std::to_string(value); }
std::string printValue(const std::string &value) { return quote(value); }

std::string printValue(const double &value) {
  // The shortest text that reads back as the same number.
  for (int precision : {6, 15, 17}) {
    std::ostringstream out;
    out.imbue(std::locale::classic());
    out.precision(precision);
    out << value;
    double back = 0;
    if (parseValue(out.str(), back) && back == value)
      return out.str();
  }
  return "nan";
}

std::string printValue(const Strings &value) {
  std::string joined;
  bool plain = !value.empty();
  for (const std::string &item : value) {
    std::string text = quote(item);
    plain &= text == item;
    joined += (joined.empty() ? "" : ",") + text;
  }
  // Braces distinguish quotes of items from quotes around the list.
  return plain ? joined : "{" + joined + "}";
}

bool isChoice(const std::string &value, const std::vector<std::string_view> &choices) {
  return std::find(choices.begin(), choices.end(), value) != choices.end();
}

std::string printChoices(const std::vector<std::string_view> &choices) {
  std::string text;
  for (std::string_view choice : choices)
    text.append(text.empty() ? "" : "|").append(choice);
  return text;
}

} // namespace detail

} // namespace hlotag::pass
