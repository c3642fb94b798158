// SPDX-License-Identifier: Apache-2.0
#include "hlotag/pass/option.h"

#include <algorithm>
#include <charconv>
#include <locale>
#include <sstream>

namespace hlotag::pass {

namespace {

using Strings = std::vector<std::string>;

/// Makes a value of the type of `like`; returns false if the texts are not of that type.
bool readTexts(const Strings &texts, const OptionValue &like, OptionValue &value) {
  value = like;
  if (auto *list = std::get_if<Strings>(&value)) {
    *list = texts;
    return true;
  }
  if (texts.size() != 1)
    return false;
  const std::string &text = texts[0];
  if (auto *string = std::get_if<std::string>(&value)) {
    *string = text;
    return true;
  }
  if (auto *flag = std::get_if<bool>(&value)) {
    *flag = text == "true" || text == "1";
    return *flag || text == "false" || text == "0";
  }
  if (auto *integer = std::get_if<int64_t>(&value)) {
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *integer);
    return error == std::errc() && end == text.data() + text.size();
  }
  // A stream with the C locale, because strtod uses the process's.
  std::istringstream in(text);
  in.imbue(std::locale::classic());
  in >> std::noskipws >> *std::get_if<double>(&value);
  return !in.fail() && in.peek() == std::istringstream::traits_type::eof();
}

} // namespace

std::vector<std::string> toTexts(const OptionValue &value) {
  if (auto *list = std::get_if<Strings>(&value))
    return *list;
  if (auto *string = std::get_if<std::string>(&value))
    return {*string};
  std::ostringstream out;
  out.imbue(std::locale::classic());
  out.precision(17);
  if (auto *number = std::get_if<double>(&value))
    out << *number;
  else if (auto *integer = std::get_if<int64_t>(&value))
    out << *integer;
  else
    out << (*std::get_if<bool>(&value) ? "true" : "false");
  return {out.str()};
}

std::string OptionBase::type() const {
  static constexpr const char *names[] = {"bool", "int", "float", "string", "list of strings"};
  std::string text;
  for (std::string_view choice : choices_)
    text.append(text.empty() ? "" : "|").append(choice);
  return choices_.empty() ? names[initial_.index()] : text;
}

bool OptionBase::set(OptionValue value) {
  if (value.index() != initial_.index())
    return false;
  auto *text = std::get_if<std::string>(&value);
  if (!choices_.empty() &&
      (!text || std::find(choices_.begin(), choices_.end(), *text) == choices_.end()))
    return false;
  value_ = std::move(value);
  return true;
}

bool OptionBase::setTexts(const std::vector<std::string> &texts) {
  OptionValue value;
  return readTexts(texts, initial_, value) && set(std::move(value));
}

} // namespace hlotag::pass
