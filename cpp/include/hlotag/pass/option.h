// SPDX-License-Identifier: Apache-2.0
//
// Which options does a pass have, and which values? Python reads and writes their text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hlotag::pass {

class OptionBase;

/// The options of one pass object, in declaration order.
using OptionList = std::vector<OptionBase *>;

using OptionValue = std::variant<int64_t, std::string, std::vector<std::string>>;

class OptionBase {
public:
  OptionBase(OptionList &owner, std::string_view name, std::string_view description,
             OptionValue initial, std::vector<std::string_view> choices = {})
      : name_(name), description_(description), value_(initial), initial_(std::move(initial)),
        choices_(std::move(choices)) {
    owner.push_back(this);
  }
  // The owning pass keeps a pointer to the option.
  OptionBase(const OptionBase &) = delete;
  OptionBase &operator=(const OptionBase &) = delete;

  std::string_view name() const { return name_; }
  std::string_view description() const { return description_; }
  const OptionValue &value() const { return value_; }
  const OptionValue &initial() const { return initial_; }
  /// `int`, `string`, `list of strings`, or the choices: `error|warning`.
  std::string type() const;

  /// Returns false, and changes nothing, if `value` has another type or is not a choice.
  bool set(OptionValue value);
  /// As `set`, with the texts of a list, or the one text of another value.
  bool setTexts(const std::vector<std::string> &texts);

private:
  std::string_view name_;
  std::string_view description_;
  OptionValue value_;
  OptionValue initial_;
  std::vector<std::string_view> choices_;
};

/// An option of a type of OptionValue. Declare it as a member of the pass; names and texts must be
/// string literals:
///
///     Option<std::string> onMistake{options(), "on-mistake", "the severity of mistakes", "error",
///                                   {"error", "warning"}};
template <class T> class Option final : public OptionBase {
public:
  Option(OptionList &owner, std::string_view name, std::string_view description, T initial = T(),
         std::vector<std::string_view> choices = {})
      : OptionBase(owner, name, description, std::move(initial), std::move(choices)) {}

  const T &operator*() const { return *std::get_if<T>(&value()); }
  const T *operator->() const { return &**this; }
};

} // namespace hlotag::pass
