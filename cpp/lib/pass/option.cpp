// SPDX-License-Identifier: Apache-2.0
#include "hlotag/pass/option.h"

#include "hlotag/ir/support.h"

#include <algorithm>
#include <charconv>

namespace hlotag::pass {

std::string OptionBase::type() const {
  static constexpr const char *names[] = {"int", "string", "list of strings"};
  return choices_.empty() ? names[initial_.index()] : ir::join(choices_, "|");
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
  if (std::holds_alternative<std::vector<std::string>>(initial_))
    return set(texts);
  if (texts.size() != 1)
    return false;
  if (std::holds_alternative<std::string>(initial_))
    return set(texts[0]);
  const char *last = texts[0].data() + texts[0].size();
  int64_t number = 0;
  auto [end, error] = std::from_chars(texts[0].data(), last, number);
  return error == std::errc() && end == last && set(number);
}

} // namespace hlotag::pass
